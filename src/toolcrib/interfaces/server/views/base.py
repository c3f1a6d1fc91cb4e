"""The base of views: fields taken from contracts by name, and pages of views."""

from typing import Generic, Self, TypeVar

from pydantic import Field

from toolcrib.contracts import Contract, LifeCycle, Timestamp

T = TypeVar("T")


class View(Contract):
    """A view of contracts: a field has the value of the attribute of its name, or of its validation alias."""

    @classmethod
    def project(cls, *sources: object, **values: object) -> Self:
        """Make a view of what there is.

        Args:
            sources: Where attributes are looked for, the first one first.
            values: Fields that are no attributes.
        """
        return cls.model_validate(_Attributes(sources, values), from_attributes=True)


class _Attributes:
    def __init__(self, sources: tuple[object, ...], values: dict[str, object]) -> None:
        self._sources, self._values = sources, values

    def __getattr__(self, name: str) -> object:
        if name in self._values:
            return self._values[name]
        for source in self._sources:
            if hasattr(source, name):
                return getattr(source, name)
        raise AttributeError(name)


class ListView(Contract, Generic[T]):
    """All things of one kind."""

    items: tuple[T, ...]


class PageView(ListView[T], Generic[T]):
    """Some things of one kind."""

    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class Stored(View):
    """What the crib knows of a stored definition, besides what its author has said."""

    revision: int
    """Send it as `If-Match` to change exactly this one."""
    content_hash: str
    life_cycle: LifeCycle
    """Of the version, as operators set it: active, deprecated, blocked."""
    realm: str
    made_by: str
    """Of this revision."""
    created_at: Timestamp = Field(validation_alias="first_created_at")
    """When the name was first saved."""
    updated_at: Timestamp = Field(validation_alias="created_at")
    """When this revision was saved."""
    warnings: tuple[str, ...] = ()
    """In responses to saving: notes for the author, such as deprecated tools that it is bound to."""

"""The decorator `entity`: an author's options for the tools of a mapped class. Loads no SQLAlchemy."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeVar

from toolcrib.contracts import InvalidDefinition
from toolcrib.kinds.entity.shape import EntityOperation

OPERATIONS: Final[tuple[EntityOperation, ...]] = ("search", "get", "create", "update", "delete", "count")

T = TypeVar("T")
_MARK: Final = "__toolcrib_entity__"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions:
    """Options for the tools of one entity; null derives the value from the table.

    Raises:
        InvalidDefinition: An excluded operation is unknown, or all are excluded.

    Example:
        options = {"orders": EntityOptions(singular="order", exclude={"delete"})}
        await crib.imports.database(name="shop", url="${env:SHOP_DATABASE_URL}", options=options)
    """

    singular: str | None = None
    """`order`, for `get_order`, `create_order`, `update_order` and `delete_order`."""
    plural: str | None = None
    """`orders`, for `search_orders` and `count_orders`."""
    description: str | None = None
    """What a row is; the table's comment if null."""
    category: str | None = None
    """The provider's name if null."""
    exclude: Collection[EntityOperation] = frozenset()
    """Operations that get no tool."""
    searchable: Collection[str] | None = None
    """Fields that may be used in filters and orders; all if null."""
    read_only: Collection[str] = frozenset()
    """Fields that cannot be written."""
    tags: tuple[str, ...] = ()
    version: str | None = None
    """Field that changes with each update, if the mapping does not name one."""
    max_rows: int = 100
    """Rows of one answer."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.exclude) - set(OPERATIONS))
        if unknown:
            msg = f"an entity has no operation {unknown[0]!r} to exclude; it has {', '.join(OPERATIONS)}"
            raise InvalidDefinition(msg)
        if not self.operations:
            msg = "an entity that excludes every operation has no tools; leave one, or do not add it"
            raise InvalidDefinition(msg)

    @property
    def operations(self) -> tuple[EntityOperation, ...]:
        """The operations that get a tool."""
        return tuple(operation for operation in OPERATIONS if operation not in self.exclude)


def entity(
    *,
    singular: str | None = None,
    plural: str | None = None,
    description: str | None = None,
    category: str | None = None,
    exclude: Collection[EntityOperation] = frozenset(),
    searchable: Collection[str] | None = None,
    read_only: Collection[str] = frozenset(),
    tags: tuple[str, ...] = (),
    version: str | None = None,
    max_rows: int = 100,
) -> Callable[[type[T]], type[T]]:
    """Say on a mapped class which tools it becomes; `crib.add_entities` makes them.

    Args:
        singular: As in `EntityOptions`, like all that follow.
        plural: See there.
        description: See there.
        category: See there.
        exclude: See there.
        searchable: See there.
        read_only: See there.
        tags: See there.
        version: See there.
        max_rows: See there.

    Raises:
        InvalidDefinition: An excluded operation is unknown, or all are excluded.

    Example:
        from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

        class Base(DeclarativeBase): ...

        @entity(singular="customer", exclude={"delete"})
        class Customer(Base):
            __tablename__ = "customers"
            id: Mapped[int] = mapped_column(primary_key=True)
    """
    options = EntityOptions(
        singular=singular,
        plural=plural,
        description=description,
        category=category,
        exclude=exclude,
        searchable=searchable,
        read_only=read_only,
        tags=tags,
        version=version,
        max_rows=max_rows,
    )

    def mark(model: type[T]) -> type[T]:
        setattr(model, _MARK, options)
        return model

    return mark


def options_of(model: type) -> EntityOptions:
    """The options of this class itself, not of a base class."""
    found = vars(model).get(_MARK)
    return found if isinstance(found, EntityOptions) else EntityOptions()


def operation_name(operation: EntityOperation, schema: str | None, table: str) -> str:
    """What a report calls an operation: `search orders`, `get sales.orders`."""
    return f"{operation} {table}" if schema is None else f"{operation} {schema}.{table}"

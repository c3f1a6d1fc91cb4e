"""What saving the documents of a project has made."""

from dataclasses import dataclass, field
from typing import NamedTuple, cast

from toolcrib.contracts.projects import ProjectBlob
from toolcrib.crib.project.documents import ProjectDocument
from toolcrib.infrastructure.store import DefinitionKind


class StoredName(NamedTuple):
    """A thing in the store that a document describes."""

    kind: DefinitionKind
    name: str
    version: str | None = None
    """Of a tool; null of all else."""

    @classmethod
    def read(cls, text: str) -> "StoredName":
        """The inverse of `str`."""
        kind, _, rest = text.partition("/")
        name, _, version = rest.partition("@")
        return cls(cast("DefinitionKind", kind), name, version or None)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.version is None else f"{self.kind}/{self.name}@{self.version}"


class Pin(NamedTuple):
    """What an import from an address has made when it was last asked."""

    digest: str
    """Of the document that says where to import from."""
    made: tuple[StoredName, ...]


@dataclass
class SavedProject:
    """What saving a project has made."""

    made_by: dict[StoredName, ProjectDocument] = field(default_factory=dict[StoredName, ProjectDocument])
    """The document of each thing in the store."""
    blobs: dict[str, ProjectBlob] = field(default_factory=dict[str, ProjectBlob])
    """By digest."""
    pins: dict[str, Pin] = field(default_factory=dict[str, Pin])
    """Of imports from addresses, by name."""
    warnings: dict[str, None] = field(default_factory=dict[str, None])
    """In order, each once."""

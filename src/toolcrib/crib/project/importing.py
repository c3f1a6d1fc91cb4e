"""Imports from addresses: servers and databases that tell what they offer.

They are asked when their document is new or has changed, or when the person who applies the project wants it, so that
applying a project again depends on no other system.
"""

from collections.abc import Iterator, Mapping

from toolcrib.contracts import content_hash
from toolcrib.contracts.projects import ProjectBlob, ProjectImport
from toolcrib.core.kinds import ImportSource
from toolcrib.core.providers import ImportedApi
from toolcrib.crib.crib import Crib
from toolcrib.crib.project.documents import ProjectDocument
from toolcrib.crib.project.saved import Pin, SavedProject, StoredName
from toolcrib.kinds.grpc.shape import GrpcImplementation
from toolcrib.kinds.table import source_at


class AddressImports:
    """Imports from addresses, each asked once at most.

    Args:
        crib: Where to; usually one on a shadow of the store.
        pins: What imports have made before, by name.
    """

    def __init__(self, crib: Crib, pins: Mapping[str, Pin]) -> None:
        self._crib = crib
        self._pins = dict(pins)
        self._blobs: dict[str, dict[str, ProjectBlob]] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    async def save(self, document: ProjectDocument, wanted: ProjectImport, saved: SavedProject) -> None:
        """Import what an address tells, or take what it has told before.

        Raises:
            ToolcribError: The address cannot be asked.
        """
        digest, name = content_hash(document.content), wanted.name
        pin = self._pins.get(name)
        if pin is None or pin.digest != digest or not self._is_there(pin):
            pin = self._pins[name] = Pin(digest, await self._ask(document, wanted))
        saved.pins[name] = pin
        saved.made_by |= dict.fromkeys(pin.made, document)
        saved.blobs |= self._blobs.get(name, {})
        saved.warnings |= dict.fromkeys(self._warnings.get(name, ()))

    def _is_there(self, pin: Pin) -> bool:
        realm = self._crib.principal.realm
        return all(
            self._crib.providers.find(realm, each.name) is not None
            if each.version is None
            else self._crib.registry.find(realm, each.name, each.version) is not None
            for each in pin.made
        )

    async def _ask(self, document: ProjectDocument, wanted: ProjectImport) -> tuple[StoredName, ...]:
        source = _source(wanted)
        made = await self._crib.imports.read(source)
        self._warnings[wanted.name] = tuple(losses_of(made, document, wanted.name))
        realm, blobs = self._crib.principal.realm, self._blobs.setdefault(wanted.name, {})
        for tool in made.tools:
            if isinstance(tool.implementation, GrpcImplementation):
                digest = tool.implementation.descriptors
                data = await self._crib.store.blobs.get(realm, digest)
                blobs[digest] = ProjectBlob.model_construct(name=digest, base64=data)
        tools = (StoredName("tool", tool.name, tool.version) for tool in made.tools)
        return (StoredName("provider", wanted.name), *tools)


def _source(wanted: ProjectImport) -> ImportSource:
    forms = ("graphql", "grpc", "mcp", "a2a", "database")
    form = next(form for form in forms if getattr(wanted, form) is not None)
    more = {"tables": wanted.tables} if form == "database" else {"auth": wanted.auth}
    return source_at(form, getattr(wanted, form), name=wanted.name, accept=True, **more)


def losses_of(made: ImportedApi, document: ProjectDocument, what: str) -> Iterator[str]:
    """What an import has left out and callers could miss.

    Args:
        made: The import.
        document: Says what to import.
        what: The file or the name that places are told in.
    """
    for loss in made.losses:
        if loss.matters:
            place = loss.places[0] if loss.places else ""
            yield f"{document.source}: {what}{place}: {loss.what}: {loss.why}"

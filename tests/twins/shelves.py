"""Small tools on a shelf, whose names say what they are: `get_deal_1` has category `get` and tag `deal`."""

from datetime import UTC, datetime

from toolcrib.contracts import LifeCycle, ToolDefinition, ToolRevision
from toolcrib.core.registry import RealmIndex
from toolcrib.kinds.python.shape import PythonImplementation

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def revision(name: str, *, number: int = 1, version: str = "1.0.0", status: LifeCycle = "active") -> ToolRevision:
    verb, thing, *_ = (*name.split("_"), "thing")
    definition = ToolDefinition(
        name=name,
        version=version,
        description=f"{verb} the {thing}, revision {number}",
        category=verb,
        tags=(thing,),
        implementation=PythonImplementation(function="tests:f"),
    )
    return ToolRevision(
        definition=definition,
        revision=number,
        content_hash=definition.content_hash(),
        status=status,
        realm="acme",
        made_by="ann",
        created_at=NOON,
    )


def laid_out(revisions: list[ToolRevision]) -> RealmIndex:
    shelf = RealmIndex()
    shelf.fill(revisions)
    return shelf

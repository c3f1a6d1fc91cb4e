"""Opens a crib for one command. Options that are not given come from the settings."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.crib.runs import IdKind

_COMPLETED: Final = 50
_MOST: Final = 1000
NamedKind: TypeAlias = Literal[
    "account",
    "agent",
    "condition",
    "draft",
    "fragment",
    "handler",
    "mcp_server",
    "provider",
    "secret",
    "trigger",
    "workflow",
]
"""Things whose names are completed."""
DEFAULT_STORE: Final = None
"""The store of the settings."""


def run_ids(incomplete: str) -> list[str]:
    """Runs that begin with what was typed; the newest, if nothing was."""

    async def read(crib: "Crib") -> Sequence[str]:
        if incomplete:
            return await crib.store.journal.find_ids(crib.principal.realm, incomplete, limit=_COMPLETED)
        return [run.run_id for run in await crib.store.journal.runs(crib.principal.realm, limit=_COMPLETED)]

    return complete(read, incomplete)


def tool_names(incomplete: str) -> list[str]:
    """Tools, agents and workflows that begin with what was typed."""

    async def read(crib: "Crib") -> Sequence[str]:
        await crib.authorize(newest=True)
        return sorted({tool.name for tool in crib.registry.current(crib.principal.realm)})

    return complete(read, incomplete)


def key_ids(incomplete: str) -> list[str]:
    """API keys that begin with what was typed."""

    async def read(crib: "Crib") -> Sequence[str]:
        return [key.key_id for key in await crib.store.api_keys.list(crib.principal.realm)]

    return complete(read, incomplete)


def conversation_ids(incomplete: str) -> list[str]:
    """The newest conversations that begin with what was typed."""

    async def read(crib: "Crib") -> Sequence[str]:
        if incomplete:
            return await crib.store.conversations.find_ids(crib.principal.realm, incomplete, limit=_COMPLETED)
        return [each.conversation_id for each in await crib.conversations.list(limit=_COMPLETED)]

    return complete(read, incomplete)


def approval_ids(incomplete: str) -> list[str]:
    """The approvals that wait and begin with what was typed."""

    async def read(crib: "Crib") -> Sequence[str]:
        return [each.approval_id for each in (await crib.approvals.page(status="waiting", limit=_COMPLETED)).items]

    return complete(read, incomplete)


def names_of(kind: NamedKind) -> Callable[[str], list[str]]:
    """Completes names of things of a kind."""

    async def read(crib: "Crib") -> Sequence[str]:
        match kind:
            case "agent":
                return [each.name for each in (await crib.agents.page(limit=_MOST)).items]
            case "workflow":
                return [each.name for each in (await crib.workflows.page(limit=_MOST)).items]
            case "draft":
                return [each.definition.name for each in await crib.workflows.drafts()]
            case "provider":
                return [each.name for each in crib.providers.current((await crib.authorize(newest=True)).realm)]
            case "secret":
                return [each.name for each in await crib.secrets.list()]
            case _:
                named = {
                    "account": crib.accounts,
                    "condition": crib.conditions,
                    "fragment": crib.fragments,
                    "handler": crib.steps,
                    "mcp_server": crib.mcp_servers,
                    "trigger": crib.triggers,
                }
                return [each.name for each in await named[kind].list()]

    return lambda incomplete: complete(read, incomplete)


secret_names: Final = names_of("secret")


def complete(read: 'Callable[["Crib"], Awaitable[Sequence[str]]]', incomplete: str) -> list[str]:
    """Complete an argument with names that are in the store of the settings; with none if it cannot be read."""
    try:
        return [name for name in with_crib(DEFAULT_STORE, read) if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 - a message would break the line that is being typed
        return []


Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Where definitions and runs are kept, instead of TOOLCRIB_STORE.",
        metavar="URL",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A real model, as provider:model, instead of TOOLCRIB_MODEL.",
        metavar="REF",
        show_default=False,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="Address of the model's server, if it is not the provider's own, instead of TOOLCRIB_BASE_URL.",
        metavar="URL",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only; an error is JSON on stderr.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DefinitionFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The definition, as YAML or JSON; - for stdin.", show_default=False)
]
Filter = Annotated[
    str | None,
    typer.Option("--filter", metavar="CONDITION", help="Such as \"enabled and name ne 'x'\".", show_default=False),
]
Sort = Annotated[
    str | None, typer.Option("--sort", metavar="FIELDS", help='Such as "created_at desc".', show_default=False)
]
AcceptChanges = Annotated[
    bool,
    typer.Option("--accept-changes", help="Also import changes that may break callers, without a review."),
]


@dataclass(frozen=True)
class IdOf:
    """Marks an argument that takes an id: whole, or enough of its first characters, or `latest`."""

    kind: "IdKind"


RunId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The run's id, its first characters, or latest.", show_default=False, autocompletion=run_ids
    ),
    IdOf("run"),
]
Position = Annotated[
    str, typer.Argument(metavar="POSITION", help="Position of the call that waits, as the trace shows it.")
]
InstanceId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The instance's id, its first characters, or latest.",
        show_default=False,
        autocompletion=run_ids,
    ),
    IdOf("instance"),
]
Folder = Annotated[
    Path | None,
    typer.Option("--write", metavar="FOLDER", file_okay=False, help="Write one file per contract into the folder."),
]


T = TypeVar("T")


def with_crib(store: str | None, work: Callable[["Crib"], Awaitable[T]], *, new: bool = False) -> T:
    """Open a crib, do the work, close it.

    Args:
        store: URL of the store; the settings' if null.
        work: What is to be done.
        new: Whether the store may be made; a command that only looks makes none.

    Raises:
        InvalidSettings: A setting cannot be used.
        NotFound: There is no such store.
        ToolcribError: As the work raises.
    """
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import load_settings

    settings = load_settings({"store": store}).settings
    if not new:
        _require(settings.store)

    async def session() -> T:
        async with Crib.from_settings(settings) as crib:
            return await work(crib)

    return asyncio.run(session())


def _require(store: str) -> None:
    from toolcrib.contracts import NotFound

    file = Path(store.removeprefix("sqlite:///"))
    if store.startswith("sqlite:///") and not file.exists():
        msg = f"there is no store at {store} (in {Path.cwd()}); name one with --store or TOOLCRIB_STORE"
        raise NotFound(msg)

"""`toolcrib mcp` and `toolcrib guard`: MCP servers on standard input and output, which clients start as commands."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.admin.serve import Application
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store

if TYPE_CHECKING:
    from toolcrib.crib.settings import Settings

_OWN_STORE = "guard.db"

Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope", metavar="URI", help="What the client may do, such as ai://tools/crm/*/execute; all if not given."
    ),
]
Server = Annotated[
    str | None,
    typer.Option("--server", metavar="NAME", help="A virtual server, whose tools are served; all tools if not given."),
]
Name = Annotated[str, typer.Option(help="The server's name in the store.")]
Command = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND...", help="The server's command after --, or its URL.", show_default=False),
]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="PATTERN", help="Tools whose calls need approval, such as 'write_*'."),
]
Hidden = Annotated[
    list[str] | None,
    typer.Option("--deny", metavar="PATTERN", help="Tools that the client does not see, such as 'delete_*'."),
]
Variables = Annotated[
    list[str] | None, typer.Option("--env", metavar="NAME", help="An environment variable that the server gets.")
]
Accept = Annotated[
    bool, typer.Option("--accept-changes", help="Accept what the server has changed, and another command or address.")
]


def mcp(app: Application = None, *, server: Server = None, scope: Scopes = None, store: Store = DEFAULT_STORE) -> None:
    """Serve the tools to one MCP client on standard input and output.

    An MCP client starts this command. A call that needs approval waits in the inbox of the store; with the setting
    server.self_approval, the person at the client decides on it.
    """
    from toolcrib.contracts import OWNER, InvalidSettings
    from toolcrib.contracts.base.errors import missing_extra
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import load_settings
    from toolcrib.interfaces.cli.support.applications import load_crib

    try:
        from toolcrib.interfaces.mcp.server import serve_stdio
    except ModuleNotFoundError as missing:
        raise InvalidSettings(missing_extra("the MCP server", missing.name, "mcp")) from missing
    settings = load_settings({"store": store}).settings
    crib = Crib.from_settings(settings) if app is None else load_crib(app, store=store)
    who = crib.principal if scope is None else OWNER.model_copy(update={"id": "mcp", "grants": tuple(scope)})
    self_approval = settings.server.self_approval
    asyncio.run(serve_stdio(crib, crib.acting_as(who), self_approval=self_approval, server_name=server))


def guard(
    command: Command,
    *,
    name: Name = "guarded",
    approve: Patterns = None,
    deny: Hidden = None,
    env: Variables = None,
    accept: Accept = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Put policy, approvals and a journal around an MCP server.

    In the configuration of an MCP client, write this command in front of the server's own. Calls are then runs in the
    store (--store, TOOLCRIB_STORE, or guard.db in the user's data folder), and the person at the client decides on
    calls that need approval.
    """
    from toolcrib.contracts import InvalidSettings
    from toolcrib.contracts.base.errors import missing_extra
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import load_settings

    try:
        from toolcrib.interfaces.mcp.guard import GuardedServer, serve_guard
    except ModuleNotFoundError as missing:
        raise InvalidSettings(missing_extra("toolcrib guard", missing.name, "mcp")) from missing
    url = command[0] if len(command) == 1 and command[0].startswith(("http://", "https://")) else ""
    guarded = GuardedServer(
        name=name,
        command=() if url else tuple(command),
        url=url,
        variables=tuple(env or ()),
        approve=tuple(approve or ()),
        deny=tuple(deny or ()),
        accept=accept,
    )
    settings = load_settings({"store": store or os.environ.get("TOOLCRIB_STORE") or own_store()}).settings
    changes = {
        "mcp_commands": (*settings.mcp_commands, *(() if url else (guarded.program_line,))),
        "released_env": (*settings.released_env, *guarded.variables),
    }
    asyncio.run(serve_guard(Crib.from_settings(_with(settings, changes)), guarded))


def own_store() -> str:
    """The store of guarded servers: a file of the user, whatever folder the client starts the command in."""
    folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolcrib"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return f"sqlite:///{folder / _OWN_STORE}"


def _with(settings: "Settings", changes: dict[str, tuple[str, ...]]) -> "Settings":
    return settings.model_copy(update=changes)

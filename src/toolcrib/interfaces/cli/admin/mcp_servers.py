"""The group `toolcrib mcp`: serves MCP on standard input and output, and keeps virtual MCP servers."""

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from toolcrib.interfaces.cli.admin import mcp
from toolcrib.interfaces.cli.support.commands import HelpTexts, ItemFormat, Resource, Table, prints
from toolcrib.interfaces.cli.support.groups import CommandApp, CommandGroup, command
from toolcrib.interfaces.cli.support.inputs import confirm, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, Yes, names_of, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject, McpServerDefinition
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import McpClientEntry

_SERVE: Final = "serve"

app = CommandApp("Serve MCP clients that start a command; manage virtual servers.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The end of its address.", show_default=False, autocompletion=names_of("mcp_server")
    ),
]
Tools = Annotated[
    list[str],
    typer.Option("--tool", metavar="TOOL", help="A name, 'crm.*', group:crm/deals or tag:deals; may be repeated."),
]
Excluded = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="TOOL", help="The same, for tools that are taken out again.")
]
Offer = Annotated[
    Literal["tools", "search"], typer.Option(help="search lists search_tools and call_tool in place of the tools.")
]
Title = Annotated[str | None, typer.Option(help="What people see in place of the name.")]
Description = Annotated[str, typer.Option(help="What it is for; instructions for the clients' model.")]
Disabled = Annotated[bool, typer.Option("--disabled", help="Refuse its clients until it is set without this.")]


Client = Annotated[
    Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex"],
    typer.Argument(metavar="CLIENT", help="claude-code, claude-desktop, cursor, vscode or codex."),
]
EntryName = Annotated[str, typer.Option("--name", help="Name of the entry in the client's configuration.")]
Url = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of toolcrib up; without it, the client starts a command.")
]
KeyVariable = Annotated[
    str, typer.Option("--key-env", metavar="NAME", help="With --url: the environment variable that has the API key.")
]
OfProject = Annotated[bool, typer.Option("--project", help="For the project in this folder, not for the user.")]
Remove = Annotated[bool, typer.Option("--remove", help="Remove the entry.")]


def _print_installed(found: "McpClientEntry") -> None:
    if found.action == "unchanged":
        print(f"{found.path} is as it should be")
        return
    print(f"{found.path} is written")
    if found.backup is not None:
        print(f"the file as it was: {found.backup}")


@command(app, "install", example="toolcrib mcp install cursor --server crm")
@prints(_print_installed)
def install(
    client: Client,
    *,
    name: EntryName = "toolcrib",
    server: mcp.Server = None,
    url: Url = None,
    key_env: KeyVariable = "TOOLCRIB_KEY",
    project: OfProject = False,
    remove: Remove = False,
    yes: Yes = False,
    store: Store = DEFAULT_STORE,
) -> "McpClientEntry":
    """Write the server into an MCP client's configuration.

    The change is shown first, and a question is asked. Other entries stay as they are. No secret is written.
    """
    import os
    import sys
    from pathlib import Path

    from toolcrib.interfaces.cli.admin import mcp_clients as clients
    from toolcrib.interfaces.cli.render.documents import McpClientEntry

    files = clients.ClientFiles(sys.platform, os.environ)
    file = clients.ClientFile.read(client, files.file_of(client, Path.cwd() if project else None))
    before, entry = file.entry(name), None
    if not remove:
        launch = clients.http_launch(url, server, key_env) if url else clients.command_launch(store, server)
        entry = clients.entry_of(client, name, launch)
    after = None if entry is None else entry.content
    found = McpClientEntry(
        client=client,
        path=str(file.path),
        name=name,
        action=_action(before, after),
        before=None if before is None else clients.masked(before),
        after=after,
    )
    if found.action == "unchanged":
        return found
    _show_change(found)
    confirm(f"Write {file.path}?", yes=yes)
    backup = file.write(file.without_entry(name) if entry is None else file.with_entry(name, entry))
    return found.model_copy(update={"backup": None if backup is None else str(backup)})


def _action(before: "JsonObject | None", after: "JsonObject | None") -> Literal["add", "change", "remove", "unchanged"]:
    if before == after:
        return "unchanged"
    if before is None:
        return "add"
    return "remove" if after is None else "change"


def _show_change(found: "McpClientEntry") -> None:
    """Show the entry as it was and as it will be, on stderr; nothing else of the file is shown."""
    from toolcrib.interfaces.cli.admin.mcp_clients import shown
    from toolcrib.interfaces.cli.render.console import JSON_ONLY

    if JSON_ONLY.get():
        return
    for mark, entry in (("-", found.before), ("+", found.after)):
        if entry is not None:
            typer.echo(f"{mark} {found.name}: {shown(entry)}", err=True)


class McpCommands(CommandGroup):
    """`toolcrib mcp` without the name of a command is `toolcrib mcp serve`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Find the command: an application (`module:name`) or an option of `serve` may come first."""
        helps = {"-h", "--help"}
        if not args or (args[0] not in helps and (args[0].startswith("-") or ":" in args[0])):
            args = [_SERVE, *args]
        return super().parse_args(ctx, args)


def _print_server(found: "McpServerDefinition") -> None:
    started = f"toolcrib mcp serve --server {found.name}"
    print(f"virtual MCP server {found.name} is at {found.path} of toolcrib up, and at {started}")


@command(app, "set", example="toolcrib mcp set crm --tool 'crm.*' --exclude 'crm.delete_*'")
@prints(_print_server)
def set_server(
    name: Name,
    *,
    tool: Tools,
    exclude: Excluded = None,
    offer: Offer = "tools",
    title: Title = None,
    description: Description = "",
    disabled: Disabled = False,
    store: Store = DEFAULT_STORE,
) -> "McpServerDefinition":
    """Set which tools a virtual MCP server offers.

    Connected clients are offered the new selection at once.
    """
    content = {
        "name": name,
        "title": title,
        "description": description,
        "tools": tool,
        "excluded_tools": exclude or [],
        "offer": offer,
        "enabled": not disabled,
    }
    server = _server(content)
    with_crib(store, lambda crib: crib.mcp_servers.save(server), new=True)
    return server


async def _add(crib: "Crib", content: "JsonObject") -> "McpServerDefinition":
    server = _server({name: value for name, value in content.items() if name != "kind"})
    await crib.mcp_servers.save(server)
    return server


def _server(content: "JsonObject") -> "McpServerDefinition":
    from toolcrib.contracts import McpServerDefinition

    return to_contract(McpServerDefinition, content, f"virtual MCP server {content.get('name')!r}")


SERVERS: "Resource[McpServerDefinition]" = Resource(
    noun="virtual MCP server",
    name=Name,
    list=lambda crib: crib.mcp_servers.list(),
    get=lambda crib, name: crib.mcp_servers.get(name),
    add=_add,
    remove=lambda crib, name: crib.mcp_servers.remove(name),
    shown=ItemFormat(
        queried="mcp_servers",
        table=Table(
            {
                "Name": lambda each: each.name,
                "Enabled": lambda each: each.enabled,
                "Offer": lambda each: each.offer,
                "Tools": lambda each: ", ".join(each.tools),
                "Without": lambda each: ", ".join(each.excluded_tools),
                "Address": lambda each: each.path,
            }
        ),
    ),
    help=HelpTexts({}, {"show": " crm", "add": " crm-server.yaml", "remove": " crm"}, group="mcp"),
)
SERVERS.add_to(app)
command(app, _SERVE, example="toolcrib mcp serve shop.tools:crib")(mcp.mcp)

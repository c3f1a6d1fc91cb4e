"""The group `toolcrib mcp`: serves MCP on standard input and output, and keeps virtual MCP servers."""

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from toolcrib.interfaces.cli.admin import mcp
from toolcrib.interfaces.cli.support.commands import HelpTexts, ItemFormat, Resource, Table, prints
from toolcrib.interfaces.cli.support.groups import CommandApp, CommandGroup, command
from toolcrib.interfaces.cli.support.inputs import to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, names_of, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject, McpServerDefinition
    from toolcrib.crib import Crib

_SERVE: Final = "serve"

app = CommandApp("Serve tools to MCP clients that start a command, and manage virtual MCP servers.")

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


class McpCommands(CommandGroup):
    """`toolcrib mcp` without the name of a command is `toolcrib mcp serve`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Find the command: an application (`module:name`) or an option of `serve` may come first."""
        helps = {"-h", "--help"}
        if not args or (args[0] not in helps and (args[0].startswith("-") or ":" in args[0])):
            args = [_SERVE, *args]
        return super().parse_args(ctx, args)


def _print_server(found: "McpServerDefinition") -> None:
    print(f"virtual MCP server {found.name} is at {found.path} of toolcrib up, and toolcrib mcp --server {found.name}")


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
    group="mcp",
    name=Name,
    list=lambda crib: crib.mcp_servers.list(),
    get=lambda crib, name: crib.mcp_servers.get(name),
    add=_add,
    remove=lambda crib, name: crib.mcp_servers.remove(name),
    shown=ItemFormat(
        table=Table(
            {
                "Name": lambda each: each.name,
                "Enabled": lambda each: each.enabled,
                "Offer": lambda each: each.offer,
                "Tools": lambda each: ", ".join(each.tools),
                "Without": lambda each: ", ".join(each.excluded_tools),
                "Address": lambda each: each.path,
            }
        )
    ),
    help=HelpTexts({}, {"show": " crm", "add": " crm-server.yaml", "remove": " crm"}),
)
SERVERS.add_to(app)
command(app, _SERVE, example="toolcrib mcp shop.tools:crib")(mcp.mcp)

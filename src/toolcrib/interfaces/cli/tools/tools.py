"""`toolcrib tool`: list, search, add, import, call, export and remove tools."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from toolcrib.interfaces.cli.agents.agents import print_saved
from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.render.tables import import_document, print_import, print_tools
from toolcrib.interfaces.cli.support.commands import HelpTexts, ItemFormat, Resource, print_json, prints, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import (
    AUTH_HELP,
    bytes_of,
    confirm,
    json_object,
    object_in,
    read_auth,
    telling_lines,
    text_of,
    to_auth,
    to_contract,
)
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    AcceptChanges,
    AsJson,
    Store,
    Yes,
    tool_names,
    with_crib,
)

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject, JsonSchema, ProviderAuth, ToolDefinition, ToolRevision
    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.runs import Result
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import Removed
    from toolcrib.kinds.http.shape import Bounds

_ADDED: Final = frozenset({"agent", "provider", "condition", "handler"})
"""Other kinds of definitions that have a command `add`."""
_NAMED: Final = 5
"""Dependents that a question names."""

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME…", help="Tools; all if none is named.", autocompletion=tool_names),
]
Form = Annotated[
    Literal[
        "universal",
        "openai",
        "openai_strict",
        "openai_responses",
        "anthropic",
        "gemini",
        "mcp",
        "langchain",
        "typescript",
        "skill",
    ],
    typer.Option(
        "--as",
        metavar="FORM",
        help="universal, openai, openai_strict, openai_responses, anthropic, gemini, mcp, langchain, typescript or "
        "skill.",
    ),
]


@shows(print_json)
async def export(crib: "Crib", names: Names = None, form: Form = "universal") -> "JsonObject | Sequence[JsonObject]":
    """Print tools as JSON, in the shape of another system.

    It is an object for one name, else a list.
    """
    found = await crib.export(*(names or ()), form=form)
    return found[0] if len(names or ()) == 1 else found


File = Annotated[Path, typer.Argument(metavar="FILE", help="Python (.py) or JavaScript (.js) that defines main.")]
CodeName = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the tool.")]
Tools = Annotated[
    list[str] | None, typer.Option("--tool", metavar="REF", help="A tool that the code may call; any number of times.")
]
Schema = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="JSON Schema of the arguments; any object without it.")
]
Description = Annotated[str, typer.Option("--description", metavar="TEXT", help="What a model reads.")]
Interpreter = Annotated[str, typer.Option(help="What runs Python: any, monty, cpython or restricted.")]
Isolation = Annotated[str, typer.Option(help="The least that is wanted: language, namespace, kernel or vm.")]
SideEffects = Annotated[
    str | None, typer.Option(help="none, reads or writes; writes if it calls tools.", show_default=False)
]


@prints(print_saved)
def add_code(
    file: File,
    *,
    name: CodeName,
    tools: Tools = None,
    schema: Schema = None,
    description: Description = "",
    interpreter: Interpreter = "any",
    isolation: Isolation = "language",
    side_effects: SideEffects = None,
    store: Store = DEFAULT_STORE,
) -> "ToolRevision":
    """Save Python or JavaScript code as a tool.

    It is checked and not run.
    """
    from toolcrib.contracts import ToolDefinition

    content = {
        "name": name,
        "description": description,
        "side_effects": side_effects or ("writes" if tools else "none"),
        "implementation": {
            "kind": "code",
            "language": "javascript" if file.suffix in (".js", ".mjs") else "python",
            "interpreter": interpreter,
            "isolation": isolation,
            "source": text_of(file),
            "tools": tools or [],
        },
    }
    if schema is not None:
        content["input_schema"] = _schema(schema)
    definition = to_contract(ToolDefinition, content, f"tool {name!r}")

    async def save(crib: "Crib") -> "ToolRevision":
        return await crib.save(definition)

    return with_crib(store, save, new=True)


def _schema(file: Path) -> "JsonSchema":
    from toolcrib.contracts import InvalidInput

    try:
        return json.loads(text_of(file))
    except ValueError as problem:
        raise InvalidInput(f"{file} is not JSON: {problem}") from None


Ref = Annotated[
    str,
    typer.Argument(metavar="NAME", help="`name` or `name@range`.", show_default=False, autocompletion=tool_names),
]
Input = Annotated[str, typer.Option("--input", metavar="JSON", help="The arguments, as a JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]


def call(
    name: Ref,
    arguments: Input = "{}",
    dry_run: DryRun = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Call a tool once, and print its output.

    With --json, the whole envelope is printed. The exit status is 1 if the call fails.
    """
    from toolcrib.contracts import Unavailable

    async def run(crib: "Crib") -> "Result":
        return await crib.invoke(name, json_object(arguments, "--input"), dry_run=dry_run, as_call=True)

    result = with_crib(store, run)
    if not result.envelopes:
        if result.status == "queued":
            raise Unavailable("; ".join(result.warnings))
        _print_waiting(result, as_json=as_json)
        return
    envelope = result.envelopes[-1]
    if as_json:
        print_json(envelope)
    elif envelope.error is not None:
        print(f"toolcrib: {envelope.error.code}: {envelope.error.message}", file=sys.stderr)
    else:
        print_json(envelope.output)
    if envelope.error is not None:
        raise typer.Exit(1)


def _print_waiting(result: "Result", *, as_json: bool) -> None:
    """Print that a call waits, and how to end the wait."""
    from toolcrib.interfaces.cli.render.documents import WaitingCall

    run_id = result.run_id
    steps = (f"toolcrib approval list --run {run_id}", "toolcrib approval approve ID", f"toolcrib run resume {run_id}")
    if as_json:
        print_json(WaitingCall(run_id=run_id, status=result.summary.status, next_steps=steps))
        return
    print(f"run {run_id} is {result.summary.status.replace('_', ' ')}; decide it, and resume it:")
    for step in steps:
        print(f"  {step}")


app = CommandApp("Define, import, inspect and call tools.")

Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE_OR_URL",
        help="OpenAPI document, JSON or YAML; or a gRPC server, as grpc://host:port.",
        show_default=False,
    ),
]
ToolName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The tool's name.", show_default=False, autocompletion=tool_names),
]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the provider.")]
Address = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Address of the API, instead of the document's.")
]
Descriptors = Annotated[
    Path | None,
    typer.Option("--descriptors", metavar="FILE", help="Descriptor set of a gRPC server, instead of asking it."),
]
Token = Annotated[
    str | None, typer.Option("--token", metavar="REF", help="Where its bearer token is kept, such as '${env:NAME}'.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="PLACE:NAME=REF",
        help="An API key in a header, query, cookie or body, such as 'query:api_key=${env:NAME}'.",
    ),
]
Bound = Annotated[
    list[str] | None,
    typer.Option("--bound", metavar="NAME=N", help="How large a document may be, such as 'max_bytes=60000000'."),
]
Auth = Annotated[str | None, typer.Option("--auth", metavar="KIND:FIELD=VALUE", help=AUTH_HELP, show_default=False)]


@command(app, "search", example="toolcrib tool search update a deal")
@shows(print_tools)
async def search_tools(
    crib: "Crib",
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What the tool should do.", show_default=False)],
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=200)] = 10,
) -> "Sequence[ToolRevision]":
    """List the tools that do what the words say."""
    return [tool for tool, _ in await crib.listing.search(" ".join(words), limit=limit)]


Definitions = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="Definitions as YAML or JSON, - for stdin; or names of tools that come with Toolcrib.",
        show_default=False,
    ),
]


def _print_added(found: "Sequence[ToolRevision]") -> None:
    for each in found:
        print_saved(each)


@command(app, "add", example="toolcrib tool add quote.yaml")
@prints(_print_added)
def add(definitions: Definitions, store: Store = DEFAULT_STORE) -> "list[ToolRevision]":
    """Save tools from files, each as a new revision.

    A file may be a document of `toolcrib apply`, with its kind. A name stands for a tool that comes with Toolcrib:
    http_get, http_request or wget.
    """
    read = [(Path(each), _definition(each)) for each in definitions]

    async def save(crib: "Crib") -> "list[ToolRevision]":
        saved: list[ToolRevision] = []
        for file, definition in read:
            with telling_lines(file):
                saved.append(await crib.save(definition))
        return saved

    return with_crib(store, save, new=True)


def _definition(given: str) -> "ToolDefinition":
    """The tool that a file defines, or that comes with Toolcrib."""
    from toolcrib.builtin_tools import builtin_tool
    from toolcrib.contracts import InvalidDefinition, ToolDefinition

    file = Path(given)
    if given != "-" and file.suffix not in {".yaml", ".yml", ".json"} and not file.is_file():
        return builtin_tool(given)
    content = object_in(file)
    kind = content.pop("kind", "tool")
    if kind != "tool":
        instead = f"toolcrib {kind} add {given}" if kind in _ADDED else "toolcrib apply FOLDER"
        raise InvalidDefinition(f"{given} is of kind {kind!r}, not tool; use {instead}")
    return to_contract(ToolDefinition, content, f"{given}: tool {content.get('name')!r}")


@command(app, "import", example="toolcrib tool import openapi.yaml --name crm")
@prints(print_import, data=import_document)
def import_tools(
    source: Source,
    *,
    name: Name,
    base_url: Address = None,
    descriptors: Descriptors = None,
    token: Token = None,
    api_key: ApiKey = None,
    auth: Auth = None,
    bound: Bound = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
) -> "ImportedApi":
    """Import an OpenAPI document or a gRPC server.

    Every operation becomes a tool. What was dropped is reported.
    """
    is_grpc = source.startswith(("grpc://", "grpcs://"))
    document = source if is_grpc or source.startswith(("http://", "https://")) else bytes_of(Path(source))
    described = None if descriptors is None else bytes_of(descriptors)
    given = _authentication(token, api_key, auth)
    bounds = _bounds(bound or [])

    async def bring(crib: "Crib") -> "ImportedApi":
        with progress(f"Importing {source}"):
            if is_grpc:
                return await crib.imports.grpc(source, name=name, descriptors=described, auth=given, accept=accept)
            api = await crib.imports.openapi(
                document, name=name, base_url=base_url, auth=given, bounds=bounds, accept=accept
            )
        _warn_of_egress(crib, api.provider.base_url)
        return api

    return with_crib(store, bring, new=True)


def _warn_of_egress(crib: "Crib", address: str | None) -> None:
    """Tell at once of an address that every call will be refused to reach, as far as it can be told without asking."""
    from yarl import URL

    from toolcrib.contracts import EgressDenied
    from toolcrib.interfaces.cli.render.console import JSON_ONLY

    if address is None or "{" in address or JSON_ONLY.get():
        return
    try:
        crib.egress.admit(URL(address))
    except EgressDenied as denied:
        typer.echo(f"toolcrib: warning: calls will be refused: {denied}", err=True)


def _bounds(given: "list[str]") -> "Bounds":
    """The bounds that the options say."""
    from pydantic import ValidationError

    from toolcrib.contracts import InvalidInput
    from toolcrib.kinds.http.shape import Bounds

    try:
        return Bounds.model_validate({name: value for name, _, value in (each.partition("=") for each in given)})
    except ValidationError as problem:
        first = problem.errors()[0]
        known = ", ".join(Bounds.model_fields)
        named = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"--bound {named}: {first['msg']}; write NAME=NUMBER with one of {known}") from None


def _authentication(token: str | None, api_key: str | None, auth: str | None) -> "ProviderAuth | None":
    """What the options say of authentication; null if they say nothing."""
    from toolcrib.contracts import InvalidInput

    if len([each for each in (token, api_key, auth) if each is not None]) > 1:
        raise InvalidInput("--token, --api-key and --auth are three ways to give the same; give one of them")
    if token is not None:
        return to_auth({"kind": "bearer", "token": token}, "--token")
    if api_key is not None:
        place, colon, rest = api_key.partition(":")
        named, equals, key = rest.partition("=")
        if not (colon and equals):
            raise InvalidInput("--api-key is not understood; write it as query:api_key=${env:NAME}")
        return to_auth({"kind": "api_key", "place": place, "name": named, "key": key}, "--api-key")
    return None if auth is None else read_auth(auth, "--auth")


Listed = Annotated[
    Literal["active", "deprecated", "blocked", "all"], typer.Option("--status", help="The tools in this state.")
]


async def _all(crib: "Crib", status: Listed = "active") -> "Sequence[ToolRevision]":
    return tuple(tool for tool in crib.registry.current(crib.principal.realm) if status in ("all", tool.status))


async def _one(crib: "Crib", name: str) -> "ToolRevision":
    return crib.registry.require(crib.principal.realm, name)


TOOLS: "Resource[ToolRevision]" = Resource(
    noun="tool",
    name=ToolName,
    list=_all,
    get=_one,
    shown=ItemFormat(queried="tools", table=print_tools),
    help=HelpTexts(
        {
            "list": "List the tools.\n\nEach is in the version that a call gets.",
            "show": "Print a tool's definition.\n\nIt is the revision that a call gets.",
        },
        {"show": " search_deals"},
    ),
)
TOOLS.add_to(app)


@command(app, "remove", example="toolcrib tool remove search_deals --yes")
@prints("tool {found.name} is removed")
def remove(name: ToolName, yes: Yes = False, store: Store = DEFAULT_STORE) -> "Removed":
    """Remove a tool.

    It asks first if something depends on the tool. Active runs continue with the revision that they began with.
    """
    from toolcrib.interfaces.cli.render.documents import Removed

    async def work(crib: "Crib") -> str:
        realm = (await crib.authorize(newest=True)).realm
        found = crib.registry.require(realm, name)
        bound = (await crib.lifecycle.impact(found.ref)).dependents
        if bound:
            names = ", ".join(dict.fromkeys(each.name for each in bound[:_NAMED]))
            confirm(f"{found.name} is used by {len(bound)}: {names}. Remove it?", yes=yes)
        await crib.registry.remove(realm, found.name)
        return found.name

    return Removed(kind="tool", name=with_crib(store, work))

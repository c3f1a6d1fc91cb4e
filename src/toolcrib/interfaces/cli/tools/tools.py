"""`toolcrib tool`: list, search, add, call and export tools, in the formats of other systems."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.interfaces.cli.render.tables import import_document, print_import, print_tools
from toolcrib.interfaces.cli.support.commands import Resource, print_json, prints, shows
from toolcrib.interfaces.cli.support.inputs import json_object, text_of, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AcceptChanges, AsJson, Store, with_crib
from toolcrib.interfaces.cli.tools.imports import ToolCommands

if TYPE_CHECKING:
    from toolcrib.contracts import JsonSchema, ProviderAuth, ToolRevision
    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.runs import Result
    from toolcrib.crib import Crib
    from toolcrib.kinds.http.shape import Bounds

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="Tools; all if none is named.")]
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
    typer.Option("--as", help="For which system."),
]


def export(names: Names = None, form: Form = "universal", store: Store = DEFAULT_STORE) -> None:
    """Print tools in the shape of another system, as JSON: an object for one name, else a list."""
    found = with_crib(store, lambda crib: crib.export(*(names or ()), form=form))
    print_json(found[0] if len(names or ()) == 1 else found)


File = Annotated[Path, typer.Argument(metavar="FILE", help="Python (.py) or JavaScript (.js) that defines main.")]
CodeName = Annotated[str, typer.Option("--name", metavar="N", help="Name of the tool.")]
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
) -> None:
    """Save code as a tool. It is checked and not run."""
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

    saved = with_crib(store, save, new=True)
    print(f"saved {saved.ref}, revision {saved.revision}")


def _schema(file: Path) -> "JsonSchema":
    from toolcrib.contracts import InvalidInput

    try:
        return json.loads(text_of(file))
    except ValueError as problem:
        raise InvalidInput(f"{file} is not JSON: {problem}") from None


Ref = Annotated[str, typer.Argument(metavar="NAME", help="`name` or `name@range`.")]
Input = Annotated[str, typer.Option("--input", metavar="JSON", help="The arguments, as a JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]


def call(
    name: Ref,
    arguments: Input = "{}",
    dry_run: DryRun = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Call a tool once, and print its output; with --json the whole envelope. A failed call ends with status 1."""
    from toolcrib.contracts import Unavailable

    async def run(crib: "Crib") -> "Result":
        return await crib.invoke(name, json_object(arguments, "--input"), dry_run=dry_run, as_call=True)

    result = with_crib(store, run)
    if not result.envelopes:
        if result.status == "queued":
            raise Unavailable("; ".join(result.warnings))
        status, run_id = result.summary.status.replace("_", " "), result.run_id
        print(f"run {run_id} is {status}; decide it with `toolcrib run approve`, then `toolcrib run resume {run_id}`")
        return
    envelope = result.envelopes[-1]
    if as_json:
        print_json(envelope)
    elif envelope.error is not None:
        typer.echo(f"{envelope.error.code}: {envelope.error.message}", err=True)
    else:
        print_json(envelope.output)
    if envelope.error is not None:
        raise typer.Exit(1)


app = typer.Typer(cls=ToolCommands, help="Import, inspect and call tools.", no_args_is_help=True)

Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE_OR_URL", help="OpenAPI document, JSON or YAML; or a gRPC server, as grpc://host:port."
    ),
]
ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.", show_default=False)]
Name = Annotated[str, typer.Option("--name", metavar="N", help="Name of the provider.")]
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
Auth = Annotated[str | None, typer.Option("--auth", metavar="JSON", help="Any other authentication of a provider.")]


@app.command("search")
@shows(print_tools)
async def search_tools(
    crib: "Crib",
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What the tool should do.")],
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=200)] = 10,
) -> "Sequence[ToolRevision]":
    """List the tools that do what the words say, best first."""
    return [tool for tool, _ in await crib.listing.search(" ".join(words), limit=limit)]


@app.command("add")
def add_builtin_tools(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Of tools that come with Toolcrib; none lists them.")
    ] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Add tools that come with Toolcrib: http_get, http_request, wget."""
    from toolcrib.builtin_tools import builtin_tool, builtin_tools

    definitions = [builtin_tool(name) for name in names or ()]
    if not definitions:
        for offered in builtin_tools():
            print(f"{offered.name}: {offered.description}")
        return

    async def save(crib: "Crib") -> "list[ToolRevision]":
        return [await crib.save(definition) for definition in definitions]

    (print_json if as_json else print_tools)(with_crib(store, save, new=True))


@app.command("import")
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
    """Import every operation of an OpenAPI document or gRPC server as a tool, and report what was dropped."""
    is_grpc = source.startswith(("grpc://", "grpcs://"))
    document = source if is_grpc or source.startswith(("http://", "https://")) else _read(Path(source))
    described = None if descriptors is None else _read(descriptors)
    given = _authentication(token, api_key, auth)
    bounds = _bounds(bound or [])

    async def bring(crib: "Crib") -> "ImportedApi":
        if is_grpc:
            return await crib.imports.grpc(source, name=name, descriptors=described, auth=given, accept=accept)
        return await crib.imports.openapi(
            document, name=name, base_url=base_url, auth=given, bounds=bounds, accept=accept
        )

    return with_crib(store, bring, new=True)


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
    from pydantic import TypeAdapter, ValidationError

    from toolcrib.contracts import ApiKeyAuth, BearerAuth, InvalidInput, ProviderAuth

    if len([each for each in (token, api_key, auth) if each is not None]) > 1:
        raise InvalidInput("--token, --api-key and --auth say the same in three ways; give one of them")
    if token is not None:
        return BearerAuth(token=token)
    adapter = TypeAdapter[ProviderAuth](ProviderAuth)
    try:
        if api_key is not None:
            place, _, rest = api_key.partition(":")
            named, _, key = rest.partition("=")
            return ApiKeyAuth.model_validate({"place": place, "name": named, "key": key})
        return None if auth is None else adapter.validate_json(auth)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        option = "--auth" if api_key is None else "--api-key"
        form = '{"kind": "bearer", "token": "${env:NAME}"}' if api_key is None else "query:api_key=${env:NAME}"
        raise InvalidInput(f"{option} is not understood: {where} {first['msg']}; write it as {form}") from None


def _read(file: Path) -> bytes:
    from toolcrib.contracts import InvalidInput

    try:
        return file.read_bytes()
    except OSError as problem:
        msg = f"{file} cannot be read: {problem.strerror}"
        raise InvalidInput(msg) from problem


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
    table=print_tools,
    get=_one,
    help={
        "list": "List the tools in service, each in the version that a call gets.",
        "show": "Print a tool's definition as JSON, in the revision that a call gets.",
    },
)
TOOLS.add_to(app)

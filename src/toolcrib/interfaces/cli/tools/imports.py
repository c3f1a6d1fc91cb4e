"""`toolcrib tool import-...`: a command for each importer, with the fields of its source as options."""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperGroup

from toolcrib.interfaces.cli.render.tables import import_document, print_import
from toolcrib.interfaces.cli.support.commands import prints
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AcceptChanges, Store, with_crib

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from toolcrib.core.kinds import Importer, Option
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib import Crib


class ToolCommands(TyperGroup):
    """The group `toolcrib tool`. Its commands for imports are made when the group is used, not with every command."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands."""
        return [*super().list_commands(ctx), *self._imports]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name."""
        return super().get_command(ctx, cmd_name) or self._imports.get(cmd_name)

    @cached_property
    def _imports(self) -> Mapping[str, Any]:
        from toolcrib.kinds.table import importers

        app = typer.Typer()
        for importer in importers():
            app.command(importer.command)(_command(importer))
        made: Any = typer.main.get_group(app)
        return made.commands


@prints(print_import, data=import_document)
def import_database(
    reference: Reference,
    *,
    name: Name,
    tables: Tables = None,
    schema: Schema = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
) -> "ImportedApi":
    """Import the tables of a database as tools: search, get, create, update, delete, count."""

    def run(*, store: str | None, as_json: bool, **given: Any) -> None:
        fields = {name: _value(options[name], value) for name, value in given.items() if value not in (None, [], False)}
        source = importer.source.of_options(fields)

    return with_crib(store, bring, new=True)


    return next((found for found in field.metadata if isinstance(found, Option)), None)


@prints(print_import, data=import_document)
def import_mcp(
    source: Source,
    *,
    name: Name,
    sse: Old = False,
    token: Token = None,
    variables: Variables = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
) -> "ImportedApi":
    """Import the tools, resources and prompts of an MCP server; TOOLCRIB_MCP_COMMANDS must allow a command."""
    import shlex

    from toolcrib.contracts import BearerAuth, InvalidInput

    is_url = source.startswith(("http://", "https://"))
    try:
        command = [] if is_url else shlex.split(source)
    except ValueError as problem:
        msg = f"{source!r} is neither an http(s) address nor a command: {problem}"
        raise InvalidInput(msg) from problem
    environment = dict(_pair(given) for given in variables or ())

    async def bring(crib: "Crib") -> "ImportedApi":
        return await crib.imports.mcp(
            source if is_url else "",
            name=name,
            transport="sse" if sse else "streamable_http",
            command=command,
            environment=environment,
            auth=None if token is None else BearerAuth(token=token),
            accept=accept,
        )

    return with_crib(store, bring, new=True)


def _value(option: "Option", value: Any) -> Any:
    """The field's value of what was given on the command line."""
    from toolcrib.contracts import BearerAuth

    if value is True:
        return True if option.value is None else option.value
    if option.metavar == "NAME=REF":
        return dict(_pair(str(option.flag), given) for given in value)
    return BearerAuth(token=value) if option.flag == "--token" else value


def _pair(flag: str, given: str) -> tuple[str, str]:
    from toolcrib.contracts import InvalidInput

    name, equals, value = given.partition("=")
    if not (name and equals):
        msg = f"{flag} takes NAME=REF, such as TOKEN='${{env:MY_TOKEN}}', and not {name!r}"
        raise InvalidInput(msg)
    return name, value

"""`toolcrib tool import-...`: one command for each importer, with the fields of its source as options."""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

import typer

from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.render.tables import import_document, print_import
from toolcrib.interfaces.cli.support.commands import prints
from toolcrib.interfaces.cli.support.groups import CommandApp, CommandGroup, command
from toolcrib.interfaces.cli.support.inputs import AUTH_HELP, read_auth, to_auth
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, with_crib

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from toolcrib.contracts import ProviderAuth
    from toolcrib.core.kinds import Importer, Option
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib import Crib


class ToolCommands(CommandGroup):
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

        app = CommandApp("Imports.")
        for importer in importers():
            if importer.command is not None:
                command(app, importer.command, example=_example(importer))(_command(importer))
        made: Any = typer.main.get_group(app)
        return made.commands


_EXAMPLES: Final = {
    "import-a2a": "toolcrib tool import-a2a https://agents.example/painter --name painter",
    "import-database": "toolcrib tool import-database '${secret:SHOP_URL}' --name shop",
    "import-graphql": "toolcrib tool import-graphql https://shop.example/graphql --name shop",
    "import-mcp": "toolcrib tool import-mcp https://mcp.example/mcp --name crm",
}


def _example(importer: "Importer[Any]") -> str:
    """A line that imports something; for the importer of a plugin, one without its own options."""
    return _EXAMPLES.get(str(importer.command), f"toolcrib tool {importer.command} --help")


def _command(importer: "Importer[Any]") -> Callable[..., None]:
    options = {name: found for name, field in importer.source.model_fields.items() if (found := _option(field))}

    def run(*, store: str | None, **given: Any) -> "ImportedApi":
        auth = given.pop(_AUTH, None)
        fields = {name: _value(options[name], value) for name, value in given.items() if value not in (None, [], False)}
        if auth is not None:
            fields["auth"] = _only_auth(fields, auth)
        source = importer.source.of_options(fields)

        async def bring(crib: "Crib") -> "ImportedApi":
            with progress("Importing"):
                return await crib.imports.read(source)

        return with_crib(store, bring, new=True)

    parameters = [_parameter(name, importer.source.model_fields[name], option) for name, option in options.items()]
    if any(option.flag == "--token" for option in options.values()):
        hint: Any = Annotated[str | None, typer.Option("--auth", metavar="KIND:FIELD=VALUE", help=AUTH_HELP)]
        parameters.append(inspect.Parameter(_AUTH, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint))
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    store = inspect.Parameter("store", inspect.Parameter.KEYWORD_ONLY, default=DEFAULT_STORE, annotation=Store)
    vars(run)["__signature__"] = inspect.Signature([*parameters, store])
    run.__doc__ = importer.summary
    return prints(print_import, data=import_document)(run)


_AUTH: Final = "any_auth"
"""The parameter of `--auth`, which is said in another way than `--token`."""


def _only_auth(fields: Mapping[str, Any], auth: str) -> "ProviderAuth":
    from toolcrib.contracts import InvalidInput

    if "auth" in fields:
        raise InvalidInput("--token and --auth are two ways to give the same; give one of them")
    return read_auth(auth, "--auth")


def _option(field: "FieldInfo") -> "Option | None":
    from toolcrib.core.kinds import Option

    return next((found for found in field.metadata if isinstance(found, Option)), None)


def _parameter(name: str, field: "FieldInfo", option: "Option") -> inspect.Parameter:
    """A parameter as typer reads it: repeated for fields of many values, a flag for those with a value of their own."""
    kind = get_origin(field.annotation)
    is_flag = option.value is not None or field.annotation is bool
    is_many = kind is dict or any(get_origin(part) is tuple for part in (field.annotation, *get_args(field.annotation)))
    required = option.flag is None or field.is_required()
    hint: Any = bool if is_flag else list[str] if is_many else str
    if not (required or is_flag):
        hint = hint | None
    info: Any = (
        typer.Argument(metavar=option.metavar, help=option.help, show_default=False)
        if option.flag is None
        else typer.Option(option.flag, metavar=option.metavar, help=option.help, show_default=False)
    )
    default: Any = inspect.Parameter.empty if required else False if is_flag else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, info])


def _value(option: "Option", value: Any) -> Any:
    """The field's value of what was given on the command line."""
    if value is True:
        return True if option.value is None else option.value
    if option.metavar == "NAME=REF":
        return dict(_pair(str(option.flag), given) for given in value)
    return to_auth({"kind": "bearer", "token": value}, "--token") if option.flag == "--token" else value


def _pair(flag: str, given: str) -> tuple[str, str]:
    from toolcrib.contracts import InvalidInput

    name, equals, value = given.partition("=")
    if not (name and equals):
        msg = f"{flag} takes NAME=REF, such as TOKEN='${{env:MY_TOKEN}}', and not {name!r}"
        raise InvalidInput(msg)
    return name, value

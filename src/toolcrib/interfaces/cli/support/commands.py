"""Makes commands from functions over an open crib, and prints their results as text or with `--json`.

    @command(app, "list", example="toolcrib run list --limit 5")
    @shows(RUNS)
    async def list_runs(crib: "Crib", limit: Limit = 20) -> "Sequence[Run]":
        \"\"\"List runs, the newest first.\"\"\"
        return await crib.store.journal.runs(crib.principal.realm, limit=limit)

The parameters of the function are those of the command; `--store` and `--json` are added. An argument whose type has an
`IdOf` may be given as a prefix of an id. A `Resource` makes the commands `list`, `show`, `add` and `remove` of things
that are kept by name.
"""

import dataclasses
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, get_args

import typer

from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.support.groups import command
from toolcrib.interfaces.cli.support.inputs import object_in, telling_lines
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    AsJson,
    DefinitionFile,
    Filter,
    IdOf,
    Sort,
    Store,
    with_crib,
)

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject, RunStatus
    from toolcrib.crib import Crib
    from toolcrib.crib.tools.resources import ResourceName
    from toolcrib.interfaces.cli.render.documents import Removed

T = TypeVar("T")

_STORE: Final = inspect.Parameter("store", inspect.Parameter.KEYWORD_ONLY, default=DEFAULT_STORE, annotation=Store)
_OF_QUERIES: Final = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    for name, kind in (("filter", Filter), ("sort", Sort))
)
_AS_JSON: Final = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)


class Ending(Protocol):
    """A reading of a run."""

    @property
    def status(self) -> "RunStatus":
        """Its status."""
        ...


def is_unsuccessful(found: Ending) -> bool:
    """Whether a run has ended without success, or no process has claimed it: the exit status is 1."""
    return found.status in {"queued", "failed", "incomplete", "timed_out", "cancelled"}


def print_json(found: object) -> None:
    """Print one JSON document.

    Args:
        found: A contract, or JSON values with contracts among them.
    """
    from toolcrib.contracts import Contract, Record

    if isinstance(found, Contract | Record):
        print(found.model_dump_json(indent=2))
    else:
        print(json.dumps(found, indent=2, ensure_ascii=False, default=_to_json))


def _to_json(value: object) -> object:
    from toolcrib.contracts import Contract, Record

    if isinstance(value, Contract | Record):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


class Table(Generic[T]):
    """Prints things as a table with one row for each.

    Args:
        columns: For each title, the value in its column: text, a number, a time in UTC, or yes or no; empty if null.
    """

    def __init__(self, columns: Mapping[str, Callable[[T], object]]) -> None:
        self._columns = columns

    def __call__(self, found: Iterable[T]) -> None:
        """Print the table."""
        rows = [[_cell(value(each)) for value in self._columns.values()] for each in found]
        print_rows(tuple(self._columns), rows)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case _:
            return str(value)


def shows(
    text: Callable[[T], object] | str,
    *,
    data: Callable[[T], object] | None = None,
    fails: Callable[[T], bool] | None = None,
    new: bool = False,
) -> Callable[[Callable[..., Awaitable[T]]], Callable[..., None]]:
    """Make a command of a function over an open crib; the command prints the result.

    Args:
        text: Prints the result; an instance of `Table`, for example. Or a format string over `found`, the result.
        data: What `--json` prints, unless it is the result itself.
        fails: Whether the exit status is 1.
        new: Whether the store may be made.
    """

    def decorate(work: Callable[..., Awaitable[T]]) -> Callable[..., None]:
        return prints(text, data=data, fails=fails)(_over_store(work, new=new))

    return decorate


def prints(
    text: Callable[[T], object] | str,
    *,
    data: Callable[[T], object] | None = None,
    fails: Callable[[T], bool] | None = None,
) -> Callable[[Callable[..., T]], Callable[..., None]]:
    """Make a command of a function that needs no crib; otherwise like `shows`.

    Args:
        text: Prints the result. Or a format string over `found`, the result.
        data: What `--json` prints, unless it is the result itself.
        fails: Whether the exit status is 1.
    """

    def decorate(work: Callable[..., T]) -> Callable[..., None]:
        def run(*, as_json: bool, **arguments: Any) -> None:
            found = work(**arguments)
            if as_json:
                print_json(found if data is None else data(found))
            elif isinstance(text, str):
                print(text.format(found=found))
            else:
                text(found)
            if fails is not None and fails(found):
                raise typer.Exit(1)

        return _describe(run, work, add=_AS_JSON)

    return decorate


def says(
    sentence: str, *, data: Callable[[Any], object] | None = None, new: bool = False
) -> Callable[[Callable[..., Awaitable[object]]], Callable[..., None]]:
    """Make a command of a function over an open crib; the command prints one sentence.

    Args:
        sentence: A format string over the command's arguments and `found`, the result: `agent {name} is removed`.
        data: What `--json` prints, unless it is the result itself.
        new: Whether the store may be made.
    """

    def decorate(work: Callable[..., Awaitable[object]]) -> Callable[..., None]:
        perform = _over_store(work, new=new)

        def run(*, as_json: bool, **arguments: Any) -> None:
            found = perform(**arguments)
            if as_json:
                print_json(found if data is None else data(found))
            else:
                print(sentence.format(found=found, **arguments))

        return _describe(run, perform, add=_AS_JSON)

    return decorate


def _over_store(work: Callable[..., Awaitable[T]], *, new: bool) -> Callable[..., T]:
    """The function without its first parameter, the crib, and with the option `--store`."""
    kinds = {
        name: kind
        for name, parameter in inspect.signature(work).parameters.items()
        for kind in get_args(parameter.annotation)
        if isinstance(kind, IdOf)
    }

    def run(*, store: str | None, **arguments: Any) -> T:
        async def with_whole_ids(crib: "Crib") -> T:
            for name, kind in kinds.items():
                if arguments[name] is not None:
                    arguments[name] = await crib.ids.find(kind.kind, arguments[name])
            return await work(crib, **arguments)

        return with_crib(store, with_whole_ids, new=new)

    return _describe(run, work, skip=1, add=_STORE)


def _describe(
    run: Callable[..., T], work: Callable[..., object], *, skip: int = 0, add: inspect.Parameter | None
) -> Callable[..., T]:
    """Give a function the name, the help and the parameters of the one that it calls, but for those that differ."""
    given = list(inspect.signature(work).parameters.values())[skip:]
    parameters = given if add is None else [*given, add]
    run.__name__, run.__doc__ = work.__name__, work.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


@dataclass(frozen=True, kw_only=True)
class ItemFormat(Generic[T]):
    """How things are printed."""

    table: "Table[T] | Callable[[Sequence[T]], object]"
    """Prints several."""
    text: Callable[[T], object] | None = None
    """Prints one as text; as JSON if null."""
    data: Callable[[T], object] | None = None
    """What `--json` prints of one, unless it is the contract itself."""
    queried: "ResourceName | None" = None
    """What they are for filters and sorts; null for a list that has none."""


@dataclass(frozen=True)
class HelpTexts:
    """What the helps of the commands of a resource say, by verb, where the usual text does not say enough."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    examples: Mapping[str, str] = field(default_factory=dict[str, str])
    """What follows `toolcrib GROUP COMMAND`."""
    group: str = ""
    """Name of the group; the noun of the resource if empty."""


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[T]):
    """What the commands over things of one kind need to know of it. A command that has no function is not made."""

    noun: str
    name: Any
    """The argument that names one: an `Annotated` type."""
    list: "Callable[[Crib], Awaitable[Iterable[T]]]"
    """Gets the crib, and what options the command has besides."""
    shown: ItemFormat[T]
    get: "Callable[[Crib, str], Awaitable[T]] | None" = None
    add: "Callable[[Crib, JsonObject], Awaitable[Any]] | None" = None
    """Saves one that a file defines."""
    remove: "Callable[[Crib, str], Awaitable[object]] | None" = None
    help: "HelpTexts" = HelpTexts()

    def add_to(self, app: typer.Typer) -> None:
        """Add the commands to a group."""
        noun, article = self.noun, "an" if self.noun[0] in "aeiou" else "a"
        usual = {
            "list": (f"List the {noun}s.", ""),
            "show": (f"Print {article} {noun}.", f" my-{noun}"),
            "add": (f"Save {article} {noun} from a file, in place of one of its name.", f" {noun}.yaml"),
            "remove": (f"Remove {article} {noun}.", f" my-{noun}"),
        }
        makers = {"list": self._list, "show": self._show, "add": self._add, "remove": self._remove}
        for verb, make in makers.items():
            made = make()
            if made is not None:
                text, end = usual[verb]
                example = f"toolcrib {self.help.group or noun} {verb}{self.help.examples.get(verb, end)}"
                command(app, verb, example=example, text=self.help.texts.get(verb, text))(made)

    def _list(self) -> Callable[..., None]:
        data, queried = self.shown.data, self.shown.queried

        async def list_all(
            crib: "Crib", *, filter: str | None = None, sort: str | None = None, **options: Any
        ) -> "Sequence[T]":
            found: Callable[..., Awaitable[Iterable[T]]] = self.list
            items = tuple(await found(crib, **options))
            return items if queried is None else crib.queries.select(queried, items, filter=filter, sort=sort)

        given = [*inspect.signature(self.list).parameters.values(), *(() if queried is None else _OF_QUERIES)]
        vars(list_all)["__signature__"] = inspect.Signature(given)

        def documents(found: Sequence[T]) -> list[object]:
            return [each if data is None else data(each) for each in found]

        return shows(self.shown.table, data=documents)(list_all)

    def _show(self) -> Callable[..., None] | None:
        get, data = self.get, self.shown.data
        if get is None:
            return None

        async def show(crib: "Crib", name: str) -> T:
            return await get(crib, name)

        def print_whole(found: T) -> None:
            print_json(found if data is None else data(found))

        show.__annotations__["name"] = self.name
        return shows(self.shown.text or print_whole, data=data)(show)

    def _add(self) -> Callable[..., None] | None:
        save, noun = self.add, self.noun
        if save is None:
            return None

        def add(*, file: Path, store: str | None) -> Any:
            content = object_in(file)
            with telling_lines(file):
                return with_crib(store, lambda crib: save(crib, content), new=True)

        vars(add)["__signature__"] = inspect.Signature([
            inspect.Parameter("file", inspect.Parameter.KEYWORD_ONLY, annotation=DefinitionFile), _STORE
        ])  # fmt: skip
        return prints(f"{noun} {{found.name}} is saved")(add)

    def _remove(self) -> Callable[..., None] | None:
        remove, noun = self.remove, self.noun
        if remove is None:
            return None

        async def remove_one(crib: "Crib", name: str) -> "Removed":
            from toolcrib.interfaces.cli.render.documents import Removed

            await remove(crib, name)
            return Removed(kind=noun, name=name)

        remove_one.__annotations__["name"] = self.name
        return says(f"{noun} {{name}} is removed")(remove_one)

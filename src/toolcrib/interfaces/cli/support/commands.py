"""Makes commands from functions over an open crib, and prints their results as text or with `--json`.

    @app.command("list")
    @shows(RUNS)
    async def list_runs(crib: "Crib", limit: Limit = 20) -> "Sequence[Run]":
        \"\"\"List runs, the newest first.\"\"\"
        return await crib.store.journal.runs(crib.principal.realm, limit=limit)

The parameters of the function are those of the command; `--store` and `--json` are added. An argument whose type has an
`IdOf` may be given as a prefix of an id. A `Resource` makes the commands `list`, `show` and `remove` of things that are
kept by name.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, get_args

import typer

from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, IdOf, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import RunStatus
    from toolcrib.crib import Crib

T = TypeVar("T")

_STORE: Final = inspect.Parameter("store", inspect.Parameter.KEYWORD_ONLY, default=DEFAULT_STORE, annotation=Store)
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
    text: Callable[[T], object],
    *,
    data: Callable[[T], object] | None = None,
    fails: Callable[[T], bool] | None = None,
    new: bool = False,
) -> Callable[[Callable[..., Awaitable[T]]], Callable[..., None]]:
    """Make a command of a function over an open crib; the command prints the result.

    Args:
        text: Prints the result; an instance of `Table`, for example.
        data: What `--json` prints, unless it is the result itself.
        fails: Whether the exit status is 1.
        new: Whether the store may be made.
    """

    def decorate(work: Callable[..., Awaitable[T]]) -> Callable[..., None]:
        return prints(text, data=data, fails=fails)(_over_store(work, new=new))

    return decorate


def prints(
    text: Callable[[T], object], *, data: Callable[[T], object] | None = None, fails: Callable[[T], bool] | None = None
) -> Callable[[Callable[..., T]], Callable[..., None]]:
    """Make a command of a function that needs no crib; otherwise like `shows`.

    Args:
        text: Prints the result.
        data: What `--json` prints, unless it is the result itself.
        fails: Whether the exit status is 1.
    """

    def decorate(work: Callable[..., T]) -> Callable[..., None]:
        def run(*, as_json: bool, **arguments: Any) -> None:
            found = work(**arguments)
            if as_json:
                print_json(found if data is None else data(found))
            else:
                text(found)
            if fails is not None and fails(found):
                raise typer.Exit(1)

        return _describe(run, work, add=_AS_JSON)

    return decorate


def says(
    sentence: str, *, data: bool = False, new: bool = False
) -> Callable[[Callable[..., Awaitable[object]]], Callable[..., None]]:
    """Make a command of a function over an open crib; the command prints one sentence.

    Args:
        sentence: A format string over the command's arguments and `found`, the result: `agent {name} is removed`.
        data: Whether there is `--json`, which prints the result.
        new: Whether the store may be made.
    """

    def decorate(work: Callable[..., Awaitable[object]]) -> Callable[..., None]:
        perform = _over_store(work, new=new)

        def run(*, as_json: bool = False, **arguments: Any) -> None:
            found = perform(**arguments)
            if as_json:
                print_json(found)
            else:
                print(sentence.format(found=found, **arguments))

        return _describe(run, perform, add=_AS_JSON if data else None)

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
    """How one thing is printed."""

    text: Callable[[T], object] | None = None
    """As text; as JSON if null."""
    data: Callable[[T], object] | None = None
    """What `--json` prints of it, unless it is the contract itself."""


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[T]):
    """What the commands over things of one kind need to know of it. A command that has no function is not made."""

    noun: str
    name: Any
    """The argument that names one: an `Annotated` type."""
    list: "Callable[[Crib], Awaitable[Iterable[T]]]"
    """Gets the crib, and what options the command has besides."""
    table: Table[T] | Callable[[Sequence[T]], object]
    get: "Callable[[Crib, str], Awaitable[T]] | None" = None
    one: "ItemFormat[T] | None" = None
    """Prints one; as JSON if null."""
    remove: "Callable[[Crib, str], Awaitable[object]] | None" = None
    help: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of `list`, `show` and `remove`, where the usual sentence does not say enough."""

    def add_to(self, app: typer.Typer) -> None:
        """Add the commands to a group."""
        usual = {
            "list": f"List the {self.noun}s.",
            "show": f"Print the {self.noun}.",
            "remove": f"Remove the {self.noun}.",
        }
        for command, make in (("list", self._list), ("show", self._show), ("remove", self._remove)):
            made = make()
            if made is not None:
                app.command(command, help=self.help.get(command, usual[command]))(made)

    @property
    def _format(self) -> ItemFormat[T]:
        return self.one or ItemFormat()

    def _list(self) -> Callable[..., None]:
        data = self._format.data

        async def list_all(crib: "Crib", **options: Any) -> "Sequence[T]":
            found: Callable[..., Awaitable[Iterable[T]]] = self.list
            return tuple(await found(crib, **options))

        vars(list_all)["__signature__"] = inspect.signature(self.list)
        return shows(self.table, data=None if data is None else lambda found: [data(each) for each in found])(list_all)

    def _show(self) -> Callable[..., None] | None:
        get, data = self.get, self._format.data
        if get is None:
            return None

        async def show(crib: "Crib", name: str) -> T:
            return await get(crib, name)

        def print_whole(found: T) -> None:
            print_json(found if data is None else data(found))

        show.__annotations__["name"] = self.name
        return shows(self._format.text or print_whole, data=data)(show)

    def _remove(self) -> Callable[..., None] | None:
        remove = self.remove
        if remove is None:
            return None

        async def remove_one(crib: "Crib", name: str) -> object:
            return await remove(crib, name)

        remove_one.__annotations__["name"] = self.name
        return says(f"{self.noun} {{name}} is removed")(remove_one)

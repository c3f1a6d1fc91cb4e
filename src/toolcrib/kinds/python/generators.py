"""Generators as tools: what they yield is shown while they run, and joined as the output.

A generator of text has a text as output, any other one a list. A synchronous generator runs in one thread from its
beginning to its end. If its call is cancelled, times out, or passes the tool's `max_output_bytes`, it is closed, so
that its `finally` blocks run: an asynchronous one at once, a synchronous one when it yields next.
"""

import inspect
from collections import abc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from types import GenericAlias
from typing import Annotated, Any, Final, NamedTuple, Protocol, cast, get_args, get_origin

import orjson

from toolcrib.contracts import Json

_SYNCHRONOUS: Final = (abc.Iterator, abc.Generator)
_ASYNCHRONOUS: Final = (abc.AsyncIterator, abc.AsyncGenerator)


class Yields(NamedTuple):
    """What a function yields."""

    element: Any
    """Type of one element."""
    is_text: bool
    """Whether the elements are pieces of one text."""

    @property
    def hint(self) -> Any:
        """The type of the whole output."""
        return str if self.is_text else GenericAlias(list, (self.element,))


def yields_of(name: str, function: Callable[..., Any], hint: Any) -> Yields | None:
    """What a function yields; null if it returns its result as a whole.

    Args:
        name: Of the tool.
        function: The function, a generator function or not.
        hint: Its return type; `Any` if it has none.

    Raises:
        InvalidDefinition: It is a generator function, and its return type is that of another kind of function.
    """
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    element = arguments[0] if arguments else Any
    is_asynchronous = inspect.isasyncgenfunction(function)
    if not (is_asynchronous or inspect.isgeneratorfunction(function)):
        return Yields(element, is_text=False) if origin in (*_SYNCHRONOUS, *_ASYNCHRONOUS) else None
    if hint is Any:
        return Yields(Any, is_text=False)
    expected = (*_ASYNCHRONOUS, abc.AsyncIterable) if is_asynchronous else (*_SYNCHRONOUS, abc.Iterable)
    if origin not in expected:
        from toolcrib.kinds.python.refusals import refuse_generator  # noqa: PLC0415 - rarely needed

        is_many = origin in (list, abc.Iterable, *_SYNCHRONOUS, *_ASYNCHRONOUS)
        raise refuse_generator(name, hint, element if is_many else hint, is_asynchronous=is_asynchronous)
    if origin is abc.Generator and len(arguments) == 3 and arguments[2] not in (None, type(None), Any):
        from toolcrib.kinds.python.refusals import refuse_returned  # noqa: PLC0415 - rarely needed

        raise refuse_returned(name, arguments[2], element)
    return Yields(element, is_text=element is str)


class Shows(Protocol):
    """Shows what is yielded: a `LiveCall`."""

    def add_text(self, text: str) -> None:
        """Show the next piece of a text."""
        ...

    def add_item(self, item: Json) -> None:
        """Show the next element of a list."""
        ...


class Collected:
    """What a generator has yielded so far. Filled in by one thread at a time.

    Args:
        yields: What it yields.
        as_json: Makes JSON of an element.
        most_bytes: The generator is stopped when the JSON of what it has yielded is longer; null for no limit.
        live: Is shown each element that is within the limit; null to show none.
    """

    def __init__(
        self, yields: Yields, as_json: Callable[[object], Json], most_bytes: int | None, live: Shows | None = None
    ) -> None:
        self.stopped = False
        """Its call is over: it is to be closed."""
        self.is_cut = False
        """It was stopped because it has yielded too much."""
        self._yields = yields
        self._as_json = as_json
        self._most_bytes = most_bytes
        self._live = live
        self._bytes = 2
        self._elements: list[Any] = []

    @property
    def output(self) -> Json:
        """The text or the list."""
        return "".join(self._elements) if self._yields.is_text else list(self._elements)

    @property
    def partial(self) -> Json:
        """The text or the list so far; null if nothing was yielded."""
        return self.output if self._elements else None

    @property
    def kind(self) -> str:
        """What the output is made of: `text` or `items`."""
        return "text" if self._yields.is_text else "items"

    async def collect(self, begun: object) -> None:
        """Take all that an iterator yields, or the elements of a list; then, or when it must stop, close it.

        Raises:
            TypeError: It is no iterator, or yields what JSON has no form for.
        """
        if isinstance(begun, AsyncIterator):
            await self._drain_asynchronously(cast("AsyncIterator[object]", begun))
            return
        from asyncio import to_thread  # noqa: PLC0415 - heavy, and loaded where calls are made

        try:
            await to_thread(self._drain, iter(cast("Any", begun)))
        finally:
            self.stopped = True

    async def _drain_asynchronously(self, iterator: AsyncIterator[object]) -> None:
        """Iterate to the end, or until enough was yielded."""
        try:
            async for element in iterator:
                if not self._add(element):
                    return
        finally:
            if isinstance(iterator, AsyncGenerator):
                await cast("AsyncGenerator[object]", iterator).aclose()

    def _drain(self, iterator: Iterator[object]) -> None:
        """Iterate in a thread, to the end or until it must stop."""
        try:
            for element in iterator:
                if self.stopped or not self._add(element):
                    return
        finally:
            if callable(close := getattr(iterator, "close", None)):
                close()

    def _add(self, element: object) -> bool:
        """Take the next element; false if no more are wanted."""
        value = self._as_json(element)
        if self._yields.is_text and not isinstance(value, str):
            msg = f"it yielded a {type(element).__name__}, and its return type says str; yield text"
            raise TypeError(msg)
        self._elements.append(value)
        if self._most_bytes is not None:
            self._bytes += _size(value, joined=self._yields.is_text)
            if self._bytes > self._most_bytes:
                self.is_cut = True
                return False
        if self._live is not None:
            if isinstance(value, str) and self._yields.is_text:
                self._live.add_text(value)
            else:
                self._live.add_item(value)
        return True


def _size(value: Json, *, joined: bool) -> int:
    """Bytes that an element adds to the JSON of the output."""
    try:
        return len(orjson.dumps(value)) + (-2 if joined else 1)
    except orjson.JSONEncodeError:  # refused as output later, with its reason
        return len(str(value))

"""Assertions on the calls of a run and of all runs inside it, with messages that show what differs."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import cast

from toolcrib.contracts import CallFinished, ChildStarted, Json, JsonObject, RunEvent, ToolEnvelope
from toolcrib.core.runs import read_tree
from toolcrib.crib import ActingCrib
from toolcrib.testing.cribs import AnyRun

_SHOWN = 5
"""Calls that a message shows in full."""


async def calls_of(crib: ActingCrib, run: AnyRun) -> Sequence[ToolEnvelope]:
    """The calls of a run that have ended, and those of the runs inside it, in the order in which they ended.

    Args:
        crib: The crib.
        run: What the tool, agent or workflow returned, or the id of its run.

    Raises:
        NotFound: There is no such run.

    Example:
        from toolcrib.testing import calls_of

        answer = await desk("Which deals has Acme?")
        print([(call.name, call.input, call.status) for call in await calls_of(crib, answer)])
    """
    run_id = run if isinstance(run, str) else run.run_id
    tree = {branch.run.run_id: branch.events for branch in await read_tree(crib.store.journal, run_id, ended=True)}
    return list(_ended(tree, run_id))


def _ended(tree: Mapping[str, Sequence[RunEvent]], run_id: str) -> Iterator[ToolEnvelope]:
    """The calls of a run; those of a nested run stand before the call that started it."""
    for entry in tree.get(run_id, ()):
        match entry.event:
            case ChildStarted(child_run_id=child):
                yield from _ended(tree, child)
            case CallFinished(envelope=envelope):
                yield envelope
            case _:
                pass


async def assert_called(
    crib: ActingCrib, run: AnyRun, tool: str, /, *, times: int | None = None, **arguments: Json
) -> ToolEnvelope:
    """Assert that a run has called a tool with these arguments, and return the last such call.

    A call that was refused, denied or skipped before its tool began does not count.

    Args:
        crib: The crib.
        run: What the tool, agent or workflow returned, or the id of its run.
        tool: Name of the tool.
        times: How many such calls there are; at least one if null.
        **arguments: Values that the call has; it may have more.

    Raises:
        AssertionError: There is no such call, or another number of them; the message shows the differences.

    Example:
        from toolcrib.testing import assert_called

        result = await deals("Update all Acme Corp deals to Negotiation")
        call = await assert_called(crib, result, "update_deals", stage="Negotiation")
        print(call.output)
    """
    found = await calls_of(crib, run)
    same = [call for call in found if call.name == tool and _was_made(call)]
    fitting = [call for call in same if _differences(arguments, call) == []]
    if fitting and times in (None, len(fitting)):
        return fitting[-1]
    lines = [_headline(tool, arguments, len(fitting), times), *_described(tool, arguments, found)]
    raise AssertionError("\n".join(lines))


async def assert_not_called(crib: ActingCrib, run: AnyRun, tool: str, /, **arguments: Json) -> None:
    """Assert that a run has not called a tool, or not with these arguments.

    Args:
        crib: The crib.
        run: What the tool, agent or workflow returned, or the id of its run.
        tool: Name of the tool.
        **arguments: Values that such a call would have; any call if there are none.

    Raises:
        AssertionError: There is such a call.

    Example:
        from toolcrib.testing import assert_not_called

        answer = await desk("Which deals has Acme?")
        await assert_not_called(crib, answer, "send_offer")
    """
    found = await calls_of(crib, run)
    made = [call for call in found if call.name == tool and _was_made(call) and not _differences(arguments, call)]
    if made:
        lines = [f"tool {tool!r} was called {_times(len(made))}, and it should not:", *map(_line, made[:_SHOWN])]
        raise AssertionError("\n".join(lines))


def _was_made(call: ToolEnvelope) -> bool:
    """Whether the tool began, or its result was in the cache."""
    return call.attempts > 0 or call.ok


def _headline(tool: str, arguments: JsonObject, fitting: int, times: int | None) -> str:
    wanted = f" with {_text(arguments)}" if arguments else ""
    if times is None:
        return f"tool {tool!r} was not called{wanted}."
    return f"tool {tool!r} was called {_times(fitting)}{wanted}, not {_times(times)}."


def _described(tool: str, arguments: JsonObject, found: Sequence[ToolEnvelope]) -> list[str]:
    """The calls of the tool, with what differs; or what was called instead."""
    same = [call for call in found if call.name == tool]
    lines: list[str] = []
    for number, call in enumerate(same[:_SHOWN], start=1):
        lines += [f"call {number}: {_line(call)}", *_differences(arguments, call)]
    if len(same) > _SHOWN:
        lines.append(f"... and {len(same) - _SHOWN} more calls of it")
    if same:
        return lines
    names = Counter(call.name for call in found)
    if not names:
        return ["The run has called no tool."]
    close = get_close_matches(tool, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return [f"It has called: {', '.join(f'{name} ({count})' for name, count in names.items())}.{hint}"]


def _differences(arguments: JsonObject, call: ToolEnvelope) -> list[str]:
    """One line for each value that was expected, and one for what there is instead."""
    given = cast("JsonObject", call.input or {})
    lines: list[str] = []
    for name, value in arguments.items():
        if name not in given:
            lines += [f"  - {name}: {_text(value)}", f"  + {name} is missing"]
        elif given[name] != value:
            lines += [f"  - {name}: {_text(value)}", f"  + {name}: {_text(given[name])}"]
    return lines


def _line(call: ToolEnvelope) -> str:
    reason = f": {call.error.message}" if call.error is not None else ""
    return f"{call.name}({_text(call.input)}) at {call.position}, {call.status}{reason}"


def _times(count: int) -> str:
    return f"{count} time{'' if count == 1 else 's'}"


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

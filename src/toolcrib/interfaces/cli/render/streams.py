"""Follows a run on the terminal, and prints an agent's text as it is streamed, with its calls.

The journal is polled until the run ends, because another process may drive the run.
"""

import json
import sys
from collections.abc import AsyncIterator
from typing import Final

from rich.live import Live

from toolcrib.contracts import ENDED, TextDelta, ToolCallEnd, ToolCallStart, Trace
from toolcrib.core.runs import clip_text
from toolcrib.crib import Crib
from toolcrib.interfaces.cli.render.console import console
from toolcrib.interfaces.cli.render.tree import draw

_WIDTH = 200
"""Characters of the arguments of a call."""


async def spoken(crib: Crib, run_id: str) -> None:
    """Drive a run, and print what it says to stdout and what it calls to stderr, until it has ended or waits."""
    numbers: dict[str, int] = {}
    async for _, event in crib.executions.follow(run_id, drive=True):
        match event:
            case TextDelta():
                if numbers.setdefault(event.position, event.number) != event.number:
                    numbers[event.position] = event.number
                    print("\n[the answer broke off; once more]", file=sys.stderr)
                print(event.text, end="", flush=True)
            case ToolCallStart():
                arguments = clip_text(json.dumps(event.input, ensure_ascii=False), _WIDTH)
                print(f"\n[{event.name} {arguments}]", file=sys.stderr)
            case ToolCallEnd(envelope=envelope) if envelope.error is not None:
                print(f"[{envelope.name}: {envelope.error.message}]", file=sys.stderr)
            case _:
                pass
    if numbers:
        print()


async def print_events(crib: Crib, run_id: str) -> None:
    """Drive a run, and print each event of its stream as a line of JSON."""
    async for _, event in crib.executions.follow(run_id, drive=True):
        print(event.model_dump_json(), flush=True)


_PAUSE_S: Final = 0.3
"""Seconds between looks."""


async def traces(crib: Crib, run_id: str, *, follow: bool) -> AsyncIterator[Trace]:
    """The trace of the run now and, if it is followed, at intervals until it has ended."""
    while True:
        trace = await crib.trace(run_id)
        yield trace
        if not follow or trace.status in ENDED:
            return
        await crib.clock.sleep(_PAUSE_S)


async def last_trace(crib: Crib, run_id: str, *, follow: bool) -> Trace:
    """The trace as it is now, or at the run's end."""
    *_, last = [trace async for trace in traces(crib, run_id, follow=follow)]
    return last


async def show_tracebacks(crib: Crib, run_id: str) -> None:
    """Print the tracebacks of exceptions that tools of a run and its nested runs raised, each under its call."""
    for found in await crib.executions.tracebacks(run_id):
        place = found.position if found.run_id == run_id else f"{found.position} of run {found.run_id}"
        print(f"\n{found.name} at {place}:\n{found.text}")


async def show_until_ended(crib: Crib, run_id: str, *, follow: bool, full: bool = False) -> None:
    """Draw the tree, and redraw it as it grows; a file gets only the last one."""
    screen = console()
    if not (follow and screen.is_terminal):
        screen.print(draw(await last_trace(crib, run_id, follow=follow), full=full))
        return
    with Live(console=screen, auto_refresh=False, vertical_overflow="visible") as live:
        async for trace in traces(crib, run_id, follow=True):
            live.update(draw(trace, full=full), refresh=True)

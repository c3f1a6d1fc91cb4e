"""An agent's words on the terminal as they are said, and its calls beside them."""

import json
import sys

from toolcrib.contracts import TextDelta, ToolCallEnd, ToolCallStart
from toolcrib.core.runs import clipped
from toolcrib.crib import Crib

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
                arguments = clipped(json.dumps(event.input, ensure_ascii=False), _WIDTH)
                print(f"\n[{event.name} {arguments}]", file=sys.stderr)
            case ToolCallEnd(envelope=envelope) if envelope.error is not None:
                print(f"[{envelope.name}: {envelope.error.message}]", file=sys.stderr)
            case _:
                pass
    if numbers:
        print()

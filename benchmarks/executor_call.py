"""CPU of one call through the executor: guard, validation, dispatch of a Python tool, envelope, journal in memory.

Each run makes twenty calls from a program of its own, as an agent's loop would, and every call is timed by itself with
the processor's clock of this process. The bare function and the two frozen models that a receipt cannot do without are
timed in the same rounds, so that a slow moment of the machine is seen in all of them.

    python -m benchmarks.executor_call --rounds 50
"""

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from statistics import median
from time import process_time_ns

from toolcrib import Crib, tool
from toolcrib.contracts import OWNER, Run, RunRequest, ToolEnvelope, ToolRevision
from toolcrib.core.engines import EngineSettings, LocalEngine, new_run_id
from toolcrib.core.executor import CallRequest
from toolcrib.core.runs import Program as RunProgram
from toolcrib.core.runs import RunContext, RunEnd

CALLS = 20
"""Of one run; 25 are the most that the default limits allow."""
BAR_US = 100.0


@tool(side_effects="none")
async def convert(amount: float, currency: str, *, digits: int = 2) -> dict[str, float | str]:
    """An amount in another currency."""
    return {"amount": round(amount * 1.1, digits), "currency": currency}


ARGUMENTS = {"amount": 12.5, "currency": "EUR"}


class Program:
    """A run's program that makes calls and notes what each one took."""

    def __init__(self) -> None:
        self.took_us: list[float] = []
        self.envelope: ToolEnvelope | None = None

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Make the calls."""
        for number in range(CALLS):
            call = CallRequest(f"t1.c{number}", tool.name, dict(ARGUMENTS), tool.content_hash)
            before = process_time_ns()
            envelope = await context.make(call)
            self.took_us.append((process_time_ns() - before) / 1000)
            if not envelope.ok:
                raise RuntimeError(envelope.error)
            self.envelope = envelope
        return RunEnd()


async def able(_: Run) -> None:
    """This process can do all that its runs need."""


def timed(work: Callable[[], object], repeats: int = CALLS) -> list[float]:
    """Microseconds of each repetition."""
    found: list[float] = []
    for _ in range(repeats):
        before = process_time_ns()
        work()
        found.append((process_time_ns() - before) / 1000)
    return found


@asynccontextmanager
async def calling(crib: Crib, program: RunProgram) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """What starts a run that makes the calls of a program, again and again."""
    crib.add(convert)
    await crib.call("convert", ARGUMENTS)
    revision = crib.registry.require(crib.principal.realm, "convert")
    engine = LocalEngine(
        store=crib.store,
        registry=crib.registry,
        executor=crib.executor,
        programs={"tool": program},
        clock=crib.clock,
        new_run_id=new_run_id,
        settings=EngineSettings(owner="benchmark"),
        check_able=able,
    )
    request = RunRequest(
        kind="tool", tool=revision.ref, content_hash=revision.content_hash, input=ARGUMENTS, principal=OWNER
    )

    async def start() -> None:
        driven = await engine.start(request)
        if driven.result.status != "completed":
            raise RuntimeError(driven.result.error)

    yield start
    await engine.close()


async def measure(rounds: int) -> dict[str, float]:
    """Medians in microseconds."""
    program = Program()
    async with Crib("memory://") as crib, calling(crib, program) as start:
        models: list[float] = []
        for number in range(rounds):
            await start()
            envelope = program.envelope
            if envelope is None:
                raise RuntimeError("the program made no call")
            fields = {name: getattr(envelope, name) for name in ToolEnvelope.model_fields}
            models += timed(lambda fields=fields: ToolEnvelope(**fields))
            if number == 0:  # what is loaded and compiled by the first calls is not what a call costs
                program.took_us.clear()
                models.clear()
    return {"call_us": median(program.took_us), "envelope_model_us": median(models)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.rounds))
    if options.json:
        print(json.dumps(found))
        return
    verdict = "met" if found["call_us"] < BAR_US else "missed"
    print(f"one call through the executor: {found['call_us']:.0f} µs CPU, median; bar {BAR_US:.0f} µs: {verdict}")
    print(f"of which one envelope model: {found['envelope_model_us']:.0f} µs")


if __name__ == "__main__":
    main()

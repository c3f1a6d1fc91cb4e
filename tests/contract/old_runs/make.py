"""Makes the runs of all cases on a database and writes down what they are: run it at the release that is kept.

python -m tests.contract.old_runs.make URL FILE [EXPECTED]

The rows go into `FILE`; with `EXPECTED`, what the runs are, and what becomes of them, goes into that file.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from tests.contract.old_runs import agents, calls, flows, plans, rows
from tests.contract.old_runs.case import Case, Process, can_be_forked, carried_on, forked, model_of, opened
from tests.contract.old_runs.hands import BEGUN, Clock, Hands
from tests.contract.old_runs.outside import outside

CASES: Final[Sequence[Case]] = (*plans.CASES, *calls.CASES, *agents.CASES, *flows.CASES)


async def make(url: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make all runs; returns what is to be kept with their rows, and what they are by the names of their cases."""
    assert len({case.name for case in CASES}) == len(CASES)
    says = {name: answers for case in CASES for name, answers in case.says.items()}
    models: Mapping[str, Any] = {name: model_of(name, answers) for name, answers in says.items()}
    hands, clock = Hands(), Clock(BEGUN)
    ids: dict[str, str] = {}
    told: dict[str, Any] = {}
    async with outside(hands, folder) as around:
        process = Process(url, around, clock, models)
        await around.define(process.crib)
        for case in CASES:
            for definition in case.define:
                await process.crib.save(definition)
            for flow in case.flows:
                await process.crib.workflows.publish(flow)
            try:
                ids[case.name] = await process.begin(case)
            except Exception as failure:
                failure.add_note(f"in the case {case.name}")
                raise
            left = {name: list(answers[len(models[name].requests) :]) for name, answers in case.says.items()}
            told[case.name] = {"now": await process.told(ids[case.name])}
            told[case.name]["says"] = {name: more if case.then is not None else [] for name, more in left.items()}
            if case.then is not None:
                told[case.name]["then"] = case.then
        await process.crib.close()
    return {"runs": ids, "keys": hands.keys}, told


async def becomes(file: Path, folder: Path, told: dict[str, Any]) -> None:
    """Write down what becomes of the runs in a process that opens the store later."""
    kept = rows.read(file)
    url = f"sqlite:///{folder}/later.db"
    rows.load(url, kept)
    async with opened(url, folder, told) as process:
        for name, each in told.items():
            if can_be_forked(each["now"]):
                each["fork"] = await forked(process, kept["runs"][name])
        for name, each in told.items():
            if "then" in each:
                each["after"] = await carried_on(process, kept["runs"][name], each["then"])


async def main(url: str, file: Path, expected: Path | None) -> None:
    """Make the runs, write them down, and say how many of each sort there are."""
    with tempfile.TemporaryDirectory() as folder:
        beside, told = await make(url, Path(folder))
        rows.export(url, file, **beside)
    told = orjson.loads(orjson.dumps(dict(sorted(told.items()))))
    if expected is not None:
        with tempfile.TemporaryDirectory() as folder:
            await becomes(file, Path(folder), told)
        text = orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        await asyncio.to_thread(expected.write_bytes, text + b"\n")
    counts = Counter((each["now"]["kind"], each["now"]["status"]) for each in told.values())
    for (kind, status), count in sorted(counts.items()):
        sys.stdout.write(f"{kind:10} {status:18} {count}\n")
    sys.stdout.write(f"{counts.total()} runs\n")


if __name__ == "__main__":
    where, kept_in, *rest = sys.argv[1:]
    asyncio.run(main(where, Path(kept_in), Path(rest[0]) if rest else None))

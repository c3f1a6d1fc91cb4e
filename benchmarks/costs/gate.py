"""The gate: what work may cost, in `costs.json`, and what is held against it.

Each cost has three things. The ceiling is never raised by any commit. The last value is what was counted when it was
last recorded; a count beyond `TOLERANCE` above it needs a reason in the same commit, and one as far below it must be
recorded, so that a saving is not lost again unseen. The reason is that of the last growth.
"""

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.costs.counting import Counts

LEDGER: Final = Path(__file__).with_name("costs.json")
PYTHON: Final = (3, 11)
"""Whose counts are recorded; other versions compile the same code to other calls."""
TOLERANCE: Final = 0.01
FIRST_CEILING: Final = 1.02
"""Of a new cost, times its first value."""
LOWERED_CEILING: Final = 1.2
"""Times the recorded value, where a ceiling is lowered."""
RECORD: Final = "python -m benchmarks.costs record"
WHERE: Final = "python -m benchmarks.costs where"


class RefusedError(Exception):
    """The costs cannot be recorded."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What is recorded of one cost."""

    last: float
    ceiling: float
    reason: str


Ledger = Mapping[str, Cost]
"""By name: the work, the store, and what is counted: `agent run, memory: calls`."""


def named(counts: Mapping[str, Counts]) -> dict[str, float]:
    """Counts of works as they are named in a ledger."""
    return {f"{work}: {what}": value for work, each in counts.items() for what, value in asdict(each).items()}


# The file -------------------------------------------------------------------------------------------------------------


def read(text: str) -> dict[str, Cost]:
    """The costs that a file has.

    Raises:
        ValueError: It is malformed.
    """
    try:
        return {name: Cost(**cost) for name, cost in json.loads(text)["costs"].items()}
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as problem:
        raise ValueError(f"{LEDGER.name} is malformed: {problem!r}; restore it from the last commit") from problem


def write(ledger: Ledger) -> str:
    """The file of these costs: a line for each, so that branches which change different ones can be merged."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(asdict(cost))}" for name, cost in sorted(ledger.items()))
    python = ".".join(map(str, PYTHON))
    return f'{{"python": "{python}", "costs": {{\n{lines}\n}}}}\n'


# Counts against the file ----------------------------------------------------------------------------------------------


def problems(ledger: Ledger, counted: Mapping[str, float]) -> Iterator[str]:
    """One message for each cost that does not stand as it is recorded."""
    for name, value in counted.items():
        cost = ledger.get(name)
        if cost is None:
            yield f"{name}: {value:g} counted, and nothing is recorded; run: {RECORD}"
        elif problem := _problem(name, cost, value):
            yield f"{name}: {value:g} counted, {problem}"
    for name in ledger.keys() - counted.keys():
        yield f"{name}: recorded, but no longer counted; count it again: what is not counted grows unseen"


def _problem(name: str, cost: Cost, value: float) -> str | None:
    told = f"{_change(cost.last, value)} the last value {cost.last:g}; the ceiling is {cost.ceiling:g}. "
    if value > cost.ceiling:
        work = name.partition(": ")[0]
        return f'{told}No commit may exceed or raise a ceiling: make it cheaper. To see what it calls: {WHERE} "{work}"'
    if _grew(cost.last, value):
        return f'{told}Make it cheaper, or record it with the reason in the same commit: {RECORD} --reason "..."'
    if value < cost.last * (1 - TOLERANCE):
        return f"{told}Record the saving in the same commit, so that it is not lost again: {RECORD}"
    return None


def _grew(before: float, now: float) -> bool:
    return now > before * (1 + TOLERANCE)


def _change(before: float, now: float) -> str:
    if not before:
        return "above"
    return f"{abs(now / before - 1):.1%} {'above' if now > before else 'below'}"


def recorded(
    ledger: Ledger, counted: Mapping[str, float], reason: str | None = None, *, lower_ceilings: bool = False
) -> dict[str, Cost]:
    """The ledger after these counts: each fall is taken over, and each growth beyond the tolerance, with its reason.

    A growth within the tolerance leaves the last value as it is, so that many of them do not add up.

    Raises:
        RefusedError: A count is above its ceiling, or grew, and there is no reason.
    """
    refused: list[str] = []
    result: dict[str, Cost] = {}
    for name, value in counted.items():
        cost = ledger.get(name) or Cost(value, _above(value, FIRST_CEILING), "first count")
        if value > cost.ceiling:
            refused.append(f"{name}: {value:g} is above the ceiling {cost.ceiling:g}, which no commit may raise")
        elif _grew(cost.last, value):
            if reason is None:
                refused.append(
                    f'{name}: {value:g} is {_change(cost.last, value)} {cost.last:g}; say why: --reason "..."'
                )
            else:
                cost = replace(cost, last=value, reason=reason)
        elif value < cost.last:
            cost = replace(cost, last=value)
        if lower_ceilings:
            cost = replace(cost, ceiling=min(cost.ceiling, _above(cost.last, LOWERED_CEILING)))
        result[name] = cost
    if gone := sorted(ledger.keys() - counted.keys()):
        refused.append(f"no longer counted: {', '.join(gone)}; count them again")
    if refused:
        raise RefusedError("\n".join(refused))
    return result


def _above(value: float, factor: float) -> float:
    """A ceiling: a whole number, so that one job for a thread more is never within it."""
    return max(value, math.floor(value * factor))


# The file against its history -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """A ledger as it once was."""

    commit: str
    ledger: Ledger


def history_problems(ledger: Ledger, before: Ledger | None, versions: Iterator[Version]) -> Iterator[str]:
    """What the file says that no commit may: a ceiling above an earlier one, a growth without a new reason.

    Args:
        ledger: As it is now.
        before: As it was one commit ago, if that is known.
        versions: As it was in all commits that are known.
    """
    lowest: dict[str, tuple[float, str]] = {}
    for version in versions:
        for name, cost in version.ledger.items():
            lowest[name] = min(lowest.get(name, (math.inf, "")), (cost.ceiling, version.commit))
    for name, (ceiling, commit) in sorted(lowest.items()):
        now = ledger.get(name)
        if now is None:
            yield f"{name}: gone, but commit {commit} has a ceiling for it, {ceiling:g}; count it again"
        elif now.ceiling > ceiling:
            yield f"{name}: the ceiling is {now.ceiling:g}, and was {ceiling:g} in commit {commit}; set it back"
    for name, cost in ledger.items():
        old = (before or {}).get(name)
        if old and cost.last > old.last and cost.reason == old.reason:
            yield f"{name}: the last value grew from {old.last:g} to {cost.last:g} without a new reason; say why"


def committed(file: Path = LEDGER) -> tuple[Ledger | None, list[Version]]:
    """The ledger one commit ago, and in every commit that changed it; nothing where there is no history."""
    commits = _git(file, "log", "--format=%h", "--", file.name)
    versions = [
        Version(commit, read(text))
        for commit in (commits or "").split()
        if (text := _git(file, "show", f"{commit}:./{file.name}")) is not None
    ]
    head, parent = (_git(file, "show", f"{commit}:./{file.name}") for commit in ("HEAD", "HEAD~1"))
    before = parent if head == file.read_text(encoding="utf-8") else head
    return (None if before is None else read(before)), versions


def _git(file: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(file.parent), *arguments]
    try:
        done: subprocess.CompletedProcess[Any] = subprocess.run(
            command, capture_output=True, text=True, check=False, encoding="utf-8"
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None

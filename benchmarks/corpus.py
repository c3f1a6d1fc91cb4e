"""What becomes of the corpus' plans when they are really run: `python -m benchmarks.corpus [--quick] [--write]`.

Tables by language, system, trait and kind of mistake, with 95 % intervals of Wilson (1927) where a share is of many;
then the tokens of a plan, estimated as those of usage are where a provider gives none. Two processes, two minutes.
"""

import argparse
import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from statistics import mean
from typing import Final

from tests.corpus.corpus import LANGUAGES, SYSTEM_NAMES, SystemName, load
from tests.corpus.figures import READERS, Line, Reader, differences, figures_of, play_right, play_wrong, write
from tests.corpus.mistakes import MISTAKES
from tests.corpus.more_mistakes import MORE_MISTAKES
from tests.corpus.runs import OUTCOMES, open_stand

_Z: Final = 1.959964
"""Of a normal distribution's middle 95 %."""
_UNASKED: Final = frozenset({"wrong", "misled"})
_FEW: Final = 12
"""Traits of fewer plans have no line."""


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if not count:
        return 0.0, 1.0
    share, square = hits / count, _Z * _Z
    centre = (share + square / (2 * count)) / (1 + square / count)
    spread = _Z / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, centre - spread), min(1.0, centre + spread)


def play(job: tuple[SystemName, Reader]) -> list[Line]:
    """All plans of one system with one reader."""
    return asyncio.run(_play(*job))


async def _play(name: SystemName, reader: Reader) -> list[Line]:
    async with open_stand(name) as stand:
        right = [line async for line in play_right(stand, load(name), reader)]
        return right + [line async for line in play_wrong(stand, load(name), reader)]


# Tables ---------------------------------------------------------------------------------------------------------------


def right_tables(lines: Sequence[Line]) -> Iterator[str]:
    """What becomes of right plans: of the tasks that can be done, and of the others."""
    clear = [line for line in lines if line.planner == "perfect" and not line.task.unclear]
    yield "## Right plans, a truthful second reader"
    for title, groups in _groupings(clear):
        yield ""
        yield f"| {title} | tasks | carried out exactly | 95 % | asked for the plan only | second readings | warned |"
        yield "|---|---|---|---|---|---|---|"
        for name, found in groups:
            done = sum(line.outcome in {"right", "right, warned"} for line in found)
            alone = sum(not set(line.further) - {"question"} for line in found)
            again = sum("verification" in line.further for line in found)
            warned = sum(line.outcome == "right, warned" for line in found)
            yield f"| {name} | {len(found)} | {_share(done, len(found))} | {alone} | {again} | {warned} |"
    unclear = [line for line in lines if line.planner == "perfect" and line.task.unclear]
    yield ""
    yield f"Tasks that cannot be done as said: {_counts(unclear)}"


def reader_table(lines: Sequence[Line]) -> Iterator[str]:
    """Right plans beside each reader."""
    yield "## Right plans beside each second reader, tasks that write"
    yield ""
    yield f"| reader | tasks | carried out without asking | 95 % | {' | '.join(OUTCOMES)} |"
    yield f"|---|---|---|---|{'---|' * len(OUTCOMES)}"
    for reader in READERS:
        found = [line for line in lines if line.reader == reader and line.label == "right"]
        done = sum(line.outcome == "right" for line in found)
        yield f"| {reader} | {len(found)} | {_share(done, len(found))} | {_cells(found)} |"


def mistake_tables(lines: Sequence[Line]) -> Iterator[str]:
    """What becomes of plans with a mistake, of tasks that write."""
    wrong = [line for line in lines if line.task.action != "read"]
    for planner, reader in product(("repeats", "corrects"), READERS):
        mine = [line for line in wrong if (line.planner, line.reader) == (planner, reader)]
        yield ""
        yield f"## A planner that errs and {planner}; second reader: {reader}; tasks that write"
        yield ""
        yield f"| mistake | plans | done unasked | 95 % | {' | '.join(OUTCOMES)} |"
        yield f"|---|---|---|---|{'---|' * len(OUTCOMES)}"
        groups = [(kind, [line for line in mine if line.label == kind]) for kind in (*MISTAKES, *MORE_MISTAKES)]
        groups.append(("guess at an unclear task", [line for line in mine if line.task.unclear]))
        groups.append(("all of the writers' kinds", [line for line in mine if line.kind in MISTAKES]))
        for name, found in groups:
            yield f"| {name} | {len(found)} | {_share(_unasked(found), len(found))} | {_cells(found)} |"


def other_tables(lines: Sequence[Line]) -> Iterator[str]:
    """The writers' kinds of mistakes by system, language and trait."""
    wrong = [line for line in lines if line.kind in MISTAKES and line.task.action != "read"]
    yield ""
    yield "## The writers' mistakes, a truthful second reader, tasks that write"
    repeats = [line for line in wrong if line.planner == "repeats"]
    for title, groups in _groupings(repeats):
        yield ""
        yield f"| {title} | plans | done unasked | 95 % | right once corrected | 95 % |"
        yield "|---|---|---|---|---|---|"
        for name, found in groups:
            same = {(line.task.id, line.kind) for line in found}
            corrected = [line for line in wrong if line.planner == "corrects" and (line.task.id, line.kind) in same]
            clear = [line for line in corrected if not line.task.unclear]
            done = sum(line.outcome == "right" for line in clear)
            unasked = _share(_unasked(found), len(found))
            yield f"| {name} | {len(found)} | {unasked} | {_share(done, len(clear))} |"


def reading_table(lines: Sequence[Line]) -> Iterator[str]:
    """What becomes of plans that only read."""
    found = [line for line in lines if line.task.action == "read" and line.planner != "corrects"]
    yield ""
    yield "## Tasks that only read"
    yield ""
    yield "| plan | plans | with a warning | 95 % |"
    yield "|---|---|---|---|"
    for kind in ("right", *MISTAKES, *MORE_MISTAKES):
        mine = [line for line in found if line.kind == kind]
        warned = sum(line.outcome.endswith("warned") for line in mine)
        yield f"| {kind} | {len(mine)} | {_share(warned, len(mine))} |"


def token_table(lines: Sequence[Line]) -> Iterator[str]:
    """The tokens of a right plan."""
    right = [line for line in lines if line.planner == "perfect"]
    yield ""
    yield "## Tokens of a plan (estimated, mean over tasks)"
    yield ""
    yield "| system | prompt | answer |"
    yield "|---|---|---|"
    for name in (*SYSTEM_NAMES, "all"):
        mine = [line for line in right if name in {line.task.system, "all"}]
        yield f"| {name} | {mean(line.sent for line in mine):.0f} | {mean(line.written for line in mine):.0f} |"


def _groupings(lines: Sequence[Line]) -> Iterator[tuple[str, list[tuple[str, list[Line]]]]]:
    traits = sorted({trait for line in lines for trait in line.task.traits})
    yield (
        "system",
        [(name, [line for line in lines if name in {line.task.system, "all"}]) for name in _and(SYSTEM_NAMES)],
    )
    yield "language", [(name, [line for line in lines if line.task.language == name]) for name in LANGUAGES]
    groups = [(trait, [line for line in lines if trait in line.task.traits]) for trait in traits]
    yield "trait", [(trait, found) for trait, found in groups if len(found) >= _FEW]


def _and(names: Iterable[str]) -> tuple[str, ...]:
    return (*names, "all")


def _share(hits: int, count: int) -> str:
    """Hits with their share, and its interval, as two cells."""
    if not count:
        return "none | "
    low, high = wilson(hits, count)
    return f"{hits} ({hits / count:.1%}) | {low:.1%} to {high:.1%}"


def _unasked(lines: Iterable[Line]) -> int:
    return sum(line.outcome in _UNASKED for line in lines)


def _cells(lines: Iterable[Line]) -> str:
    counts = Counter(line.outcome for line in lines)
    return " | ".join(str(counts[outcome] or "") for outcome in OUTCOMES)


def _counts(lines: Iterable[Line]) -> str:
    counts = Counter(line.outcome for line in lines)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())


# Command --------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the truthful reader")
    parser.add_argument("--write", action="store_true", help="record the figures for the tests")
    parser.add_argument("--list", action="store_true", help="name the plans that were carried out wrong unasked")
    options = parser.parse_args()
    readers: Sequence[Reader] = READERS[:1] if options.quick else READERS
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        lines = [line for found in pool.map(play, product(SYSTEM_NAMES, readers)) for line in found]
    truthful = [line for line in lines if line.reader == "truthful"]
    _print(right_tables(truthful), "")
    _print(reader_table(lines))
    _print(mistake_tables(lines))
    _print(other_tables(truthful))
    _print(reading_table(truthful))
    _print(token_table(truthful), "")
    if options.list:
        _print(f"{line.planner} {line.label} {line.task.id}: {line.outcome}" for line in _worst(truthful))
    figures = figures_of(lines)
    if options.write and not options.quick:
        write(figures)
    else:
        _print(f"changed: {text}" for text in differences(figures))


def _worst(lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if line.outcome in _UNASKED and line.task.action != "read")


def _print(lines: Iterable[str], *more: str) -> None:
    for line in (*lines, *more):
        print(line)


if __name__ == "__main__":
    main()

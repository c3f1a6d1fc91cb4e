"""What the suites found, as a line of JSON between processes and as a table."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from benchmarks.report import table
from benchmarks.suites.playing import Turn


@dataclass
class Verdict:
    """How the tasks of one group came out."""

    group: str
    tools: int = 0
    tasks: int = 0
    turns: int = 0
    calls: int = 0
    live: int = 0
    """Tasks whose final state the suite's judge accepts, after the run and its replay."""
    replayed: int = 0
    """Tasks whose runs replay on their journals to the same envelopes and the same end."""
    again: int = 0
    """Tasks that the judge accepts after the recorded answers were given again on a fresh state."""
    controls: int = 0
    """Tasks that were played once more with a call left out."""
    detected: int = 0
    """Of these, those that the judge refuses."""
    failed: list[str] = field(default_factory=list[str])

    @property
    def whole(self) -> bool:
        """Whether every task came out as the suite says."""
        return self.tasks == self.live == self.replayed == self.again

    def count(self, task: str, turns: Sequence[Turn], *, live: bool, replayed: bool, again: bool) -> None:
        """Add a task."""
        self.tasks += 1
        self.turns += len(turns)
        self.calls += sum(len(turn.calls) for turn in turns)
        self.live += live
        self.replayed += replayed
        self.again += again
        if not (live and replayed and again):
            self.failed.append(task)

    def line(self) -> str:
        """As another process reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, line: str) -> Self:
        """What `line` wrote."""
        return cls(**json.loads(line))


def verdict_table(verdicts: Iterable[tuple[str, Verdict, float]]) -> str:
    """One line for each group: suite, verdict, seconds."""
    header = [
        "suite",
        "group",
        "tools",
        "tasks",
        "turns",
        "calls",
        "live",
        "replayed",
        "again",
        "left-out call seen",
        "s",
    ]
    return table(header, [_cells(suite, verdict, seconds) for suite, verdict, seconds in verdicts])


def _cells(suite: str, verdict: Verdict, seconds: float) -> Sequence[str]:
    of = f"/{verdict.tasks}"
    return [
        suite, verdict.group, str(verdict.tools), str(verdict.tasks), str(verdict.turns), str(verdict.calls),
        f"{verdict.live}{of}", f"{verdict.replayed}{of}", f"{verdict.again}{of}",
        f"{verdict.detected}/{verdict.controls}", f"{seconds:.1f}",
    ]  # fmt: skip

"""The decisions of a schedule: drawn from a seed, or given.

A decision has a name that says where it is made, such as `first write 3 delay`. Its value 0 means that nothing special
happens. So a schedule is short: it names only the decisions that are not 0, and one of them can be left out without
changing what the others mean.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

_RATES: Final[Mapping[str, tuple[float, ...]]] = {
    "delay": (0.0, 0.03, 0.15, 0.5),
    "fault": (0.0, 0.05, 0.2),
    "crash": (0.0, 0.0, 0.003, 0.02),
    "freeze": (0.0, 0.0, 0.003, 0.02),
    "clock": (0.0,),
}
"""How often a decision of a kind is not 0: one of these for each schedule, so that schedules differ in character."""


@dataclass(frozen=True)
class Schedule:
    """Everything that is decided in one simulation.

    Args:
        seed: What decisions are drawn from.
        decisions: Those that are not 0, by name; drawn from the seed if null.
    """

    seed: int
    decisions: Mapping[str, int] | None = None

    def __str__(self) -> str:
        if self.decisions is None:
            return f"seed {self.seed}"
        return f"seed {self.seed}, {len(self.decisions)} decisions: {dict(self.decisions)}"


class Decisions:
    """Makes the decisions of a schedule.

    Args:
        schedule: The schedule.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.taken: dict[str, int] = {}
        """Those so far that are not 0."""
        self.made = 0
        """How many there were."""
        self.random = Random(schedule.seed)
        """For ids and scenarios, which do not change when decisions are left out."""
        self._given = schedule.decisions
        self._random = Random(f"decisions {schedule.seed}")
        self.asked: Counter[str] = Counter()
        """How often each decision came up, by place and kind."""
        rates = Random(f"rates {schedule.seed}")
        self._rates = {kind: rates.choice(options) for kind, options in _RATES.items()}

    def choose(self, place: str, kind: str, options: int) -> int:
        """Decide.

        Args:
            place: Where; the same place may be asked again.
            kind: What about: `delay`, `fault`, `crash`, `freeze` or `clock`, where 0 is the ordinary and frequent
                option, or any other word, where all options are as frequent.
            options: How many there are.
        """
        self.made += 1
        where = f"{place} {kind}"
        self.asked[where] += 1
        name = f"{where} {self.asked[where]}"
        value = self._draw(kind, options) if self._given is None else min(self._given.get(name, 0), options - 1)
        if value:
            self.taken[name] = value
        return value

    def _draw(self, kind: str, options: int) -> int:
        rate = self._rates.get(kind)
        if rate is None:
            return self._random.randrange(options)
        return self._random.randrange(1, options) if self._random.random() < rate else 0

"""Models that go in circles: the same calls with the same outcomes, turn after turn.

What a turn did is compared with the turn before it, so that somebody who asks again because something has changed is
never meant. A model is told once; if it goes on nevertheless, it never stops by itself.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from toolcrib.contracts import ErrorCode, Reason, ToolError
from toolcrib.core.executor import error

NOTED: Final = 3
"""Equal turns in a row after which the model is told."""
MOST: Final = 6
"""Equal turns in a row that end the run."""
NOTE: Final = (
    f"You have made these calls {NOTED} times now, with the same outcome each time. Making them again changes nothing: "
    "do something else, or answer with what you have."
)

Done: TypeAlias = tuple[str, str, str]
"""Name, arguments as they were written, and what came of it."""


class Repeats:
    """Counts turns in a row that did the same."""

    def __init__(self) -> None:
        self._last: Sequence[Done] = ()
        self._count = 0

    def count(self, turn: Sequence[Done]) -> int:
        """How many turns in a row have done just this.

        Args:
            turn: The calls of a turn.
        """
        self._count = self._count + 1 if turn == self._last else 1
        self._last = turn
        return self._count


def going_in_circles(model: str, turn: Sequence[Done]) -> ToolError:
    """The error of a run whose model made the same calls again and again."""
    names = ", ".join(dict.fromkeys(name for name, _, _ in turn))
    message = f"the model {model!r} made the same calls with the same outcome {MOST} times in a row: {names}"
    return error(ErrorCode.POLICY_DENIED, Reason.REPEATED_CALLS, f"{message}; it was told to stop that after {NOTED}")

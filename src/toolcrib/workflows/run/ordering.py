"""The order in which steps that work side by side come to their ends.

It is the one thing about a run that its definition and its calls do not tell: which steps could still begin before one
failed, and which of two alternatives came last. The journal has it; a run that is worked on again, or replayed, goes
through the ends that it has in that order, however fast they come now.
"""

from collections import deque
from collections.abc import Collection, Iterable

from toolcrib.contracts.workflows import SettledStep


class EndsInOrder:
    """Ends that have come and are not dealt with yet.

    Args:
        recorded: Names of the steps that had ended when this process took the run, in order.
    """

    def __init__(self, recorded: Iterable[str]) -> None:
        self._recorded = deque(recorded)
        self._come: dict[str, SettledStep] = {}

    def __len__(self) -> int:
        return len(self._come)

    def add(self, name: str, settled: SettledStep) -> None:
        """A step has come to its end."""
        self._come[name] = settled

    def next(self, underway: Collection[str]) -> tuple[str, SettledStep] | None:
        """The end that is next; null if it is to be waited for.

        Args:
            underway: Names of the steps that have begun and not ended.
        """
        while self._recorded:
            name = self._recorded[0]
            if name in self._come:
                break
            if name in underway:
                return None
            self._recorded.popleft()  # it never began, or was dealt with as it did
        if not self._come:
            return None
        name = self._recorded[0] if self._recorded else next(iter(self._come))
        return name, self._come.pop(name)

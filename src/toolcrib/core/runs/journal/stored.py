"""A run as it is kept: what comparisons, bundles and replays read."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from toolcrib.contracts import Run, RunEvent, Signal


class StoredRun(Struct, frozen=True):
    """A run with its log, as a store or a bundle has it."""

    run: Run
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal] = {}
    """What was left for it, taken up by it or not."""

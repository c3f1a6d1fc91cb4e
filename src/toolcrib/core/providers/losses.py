"""Collects what an import could not keep as it is; an importer that says nothing loses in silence."""

from collections.abc import Iterator

from toolcrib.contracts import Loss, LossEffect, LossKind


class Losses:
    """The losses of one operation, one shared part or one document; equal ones become one with several places."""

    def __init__(self) -> None:
        self._found: dict[tuple[LossEffect, LossKind, str, str], dict[str, None]] = {}
        self.components: dict[str, Losses] = {}
        """Losses of shared parts that are used here, by place."""

    def uses(self, place: str, losses: "Losses") -> None:
        """Record that a shared part is used, if it lost something."""
        if losses:
            self.components[place] = losses

    def dropped(self, place: str, kind: LossKind, what: str, why: str) -> None:
        """Record that the tools do not say what stands at a place."""
        self._found.setdefault(("dropped", kind, what, why), {})[place] = None

    def changed(self, place: str, kind: LossKind, what: str, why: str) -> None:
        """Record that the tools say it in another way."""
        self._found.setdefault(("changed", kind, what, why), {})[place] = None

    def report(self) -> tuple[Loss, ...]:
        """Everything recorded, in order."""
        return tuple(self._all())

    def _all(self) -> Iterator[Loss]:
        for (effect, kind, what, why), places in self._found.items():
            yield Loss(effect=effect, kind=kind, what=what, why=why, places=tuple(places))

    def __bool__(self) -> bool:
        return bool(self._found)

"""What an import could not keep, one entry per operation and cause: an importer that says nothing loses in silence.

Annotations without effect on a call (examples, titles, XML hints, links to documentation, `x-` extensions) are no loss.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that the document says and the tools do not."""

    operation: str
    """`GET /deals/{id}`, or empty for the document as a whole."""
    what: str
    """`operation`, or a part of it: `parameter filter`, `request body`, `schema Deal`."""
    why: str


@dataclass(slots=True)
class Losses:
    """Collects the losses of one operation; the same loss counts once."""

    operation: str = ""
    _found: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])

    def note(self, what: str, why: str) -> None:
        """Record a loss."""
        self._found[what, why] = None

    def report(self) -> tuple[Loss, ...]:
        """Everything noted, in order."""
        return tuple(Loss(self.operation, what, why) for what, why in self._found)

"""What an import kept, changed and dropped: the loss report, which says nothing less than all of it.

A report is data for people and programs alike: the command line shows it short, the API whole, and a provider keeps its
`summary`. It describes one import and is no definition; nothing runs by it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject

LossEffect: TypeAlias = Literal["changed", "dropped"]
"""`changed`: the tools say it in another way. `dropped`: they do not say it."""

LossKind: TypeAlias = Literal[
    "annotation",
    "bound",
    "direction",
    "duplicate",
    "extension",
    "incoming",
    "invalid",
    "media_type",
    "operation",
    "reference",
    "response",
    "security",
    "server",
    "style",
    "syntax",
    "text",
    "unsupported",
    "unused",
]
"""Why something was not kept as it is.

annotation: a title, an example, a link: nothing that a call needs. bound: larger or deeper than a limit. direction:
read-only in a request, write-only in a response. duplicate: said twice. extension: an `x-` field. incoming: a webhook,
a callback. invalid: against the document's own specification. media_type: another type of the same content was chosen.
operation: the operation was left out. reference: it leads nowhere. response: of an error, or deep in an answer.
security, server, style: not possible here. syntax: of the text. text: prose that was shortened or replaced.
unsupported: known and not translated. unused: no operation uses it.
"""

_HARMLESS: Final = frozenset(
    {"annotation", "direction", "extension", "incoming", "media_type", "response", "text", "unused"}
)


class Loss(Contract):
    """One thing that a document says and the tools do not, or say in another way."""

    effect: LossEffect
    kind: LossKind
    what: str
    """The part: `parameter filter`, `keyword pattern`, `response 404`."""
    why: str
    places: tuple[str, ...]
    """JSON pointers (RFC 6901) into the document; `uri#pointer` into another one."""

    @property
    def matters(self) -> bool:
        """Whether it may change what a call can say or do; the rest is decoration, or belongs to no call."""
        return self.kind not in _HARMLESS


class OperationImport(Contract):
    """What became of one operation."""

    operation: str
    """`GET /deals/{id}`."""
    place: str
    """JSON pointer of the operation."""
    tool: str | None
    """Name of its tool; null if it was left out, and then a loss of kind `operation` says why."""
    group: str | None = None
    kept: tuple[str, ...] = ()
    """The parts that the tool has: `parameter limit`, `body application/json`, `response 200`."""
    losses: tuple[Loss, ...] = ()
    """Of the operation itself."""
    components: tuple[str, ...] = ()
    """Places of the shared parts that it uses and that lost something; `LossReport.components` says what."""


class LossReport(Contract):
    """Everything that an import kept, changed and dropped, each loss once."""

    format: str
    """`OpenAPI 3.1.0`."""
    losses: tuple[Loss, ...] = ()
    """Of the document as a whole."""
    operations: tuple[OperationImport, ...] = ()
    """Every operation of the document that was asked for, in its order."""
    components: dict[str, tuple[Loss, ...]] = Field(default_factory=dict)
    """Losses of shared parts by place."""

    def of(self, operation: OperationImport) -> Iterator[Loss]:
        """The losses of an operation, those of the shared parts that it uses included."""
        yield from operation.losses
        for place in operation.components:
            yield from self.components[place]

    def all(self) -> Iterator[Loss]:
        """Every loss, once."""
        yield from self.losses
        for operation in self.operations:
            yield from operation.losses
        for losses in self.components.values():
            yield from losses

    def summary(self) -> JsonObject:
        """The report in short: how many operations became tools, and how many losses there are by effect and kind."""
        found = list(self.all())
        made = sum(operation.tool is not None for operation in self.operations)
        return {
            "format": self.format,
            "operations": len(self.operations),
            "tools": made,
            "left_out": len(self.operations) - made,
            "losses": dict(sorted(Counter(f"{loss.effect}_{loss.kind}" for loss in found).items())),
            "losses_that_matter": sum(loss.matters for loss in found),
        }

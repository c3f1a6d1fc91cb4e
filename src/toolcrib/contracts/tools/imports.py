"""The result of an import: what was adopted, held back and lost.

A loss report lists everything that an import kept, changed and dropped. The command line prints a summary, the API
returns all of it, and a provider stores its `summary`.

The first import of a tool is trusted: its content hash is the baseline. A stored tool with another content was edited
by a person and is never overwritten; an offer with another content is a change, which is classified. An offer that was
held back never becomes the baseline.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject, Timestamp
from toolcrib.contracts.providers.providers import ProviderDefinition
from toolcrib.contracts.tools.changes import ToolChange
from toolcrib.contracts.tools.tools import LifeCycle, ToolDefinition

Adoption: TypeAlias = Literal["new", "unchanged", "changed", "kept", "held", "gone", "returned"]
"""new: stored for the first time. unchanged: offered as before. changed: the change was adopted. kept: a person has
changed or removed the tool, so it stays as it is. held: the change waits for a person, and the tool is blocked. gone:
not offered any more, and blocked. returned: offered again as it was, and unblocked."""


class VersionLife(Contract):
    """The life-cycle state of one version."""

    version: str
    status: LifeCycle = "active"
    message: str | None = None
    sunset: Timestamp | None = None
    replacement: str | None = None


class ToolProposal(Contract):
    """A complete change that another system proposes, for a person to read. It has no effect."""

    definition: ToolDefinition
    change: ToolChange
    """From the baseline to it."""
    offered_at: Timestamp


class Baseline(Contract):
    """What a provider offered under a tool's name when it was last adopted."""

    tool: str
    provider: str
    adopted: str
    """Content hash of the definition."""
    offered: bool = True
    """Whether the last import found it."""
    proposal: ToolProposal | None = None
    """A change that waits for a person."""
    rejected: str | None = None
    """Content hash of the last change that a person did not want."""
    blocked: tuple[VersionLife, ...] = ()
    """Versions that were blocked because of the provider, with the state that they had before."""


class ProviderBaseline(Contract):
    """A provider as the last import made it, to distinguish a person's settings from the import's."""

    offered: ProviderDefinition


class AdoptedTool(Contract):
    """The result for one tool."""

    tool: str
    adoption: Adoption
    change: ToolChange | None = None
    """From the baseline to what is offered now, if that is different."""
    message: str = ""
    """What a person should know or do."""


_STORED: Final = frozenset[Adoption]({"new", "unchanged", "changed", "returned"})


class ImportOutcome(Contract):
    """What an import did: every tool that is offered or was, by its adoption."""

    provider: str
    tools: tuple[AdoptedTool, ...] = ()
    """As they are offered; those that are gone last."""
    warnings: tuple[str, ...] = ()
    """Which workflows keep what they were published with, and which break, because of this import."""

    def counts(self) -> dict[Adoption, int]:
        """How many tools there are of each adoption, of those that there are."""
        return dict(Counter(found.adoption for found in self.tools))

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the tools that are stored as they are offered now: all but those that are kept, held or gone."""
        return tuple(found.tool for found in self.tools if found.adoption in _STORED)

    @property
    def held(self) -> tuple[AdoptedTool, ...]:
        """The tools whose change waits for a person."""
        return tuple(found for found in self.tools if found.adoption == "held")


class ToolReview(Contract):
    """A tool as it is and as its provider proposes it, for the person who decides."""

    tool: str
    provider: str
    status: LifeCycle
    current: ToolDefinition
    changed_by_person: bool
    """Whether `current` is something else than what was adopted from the provider."""
    proposal: ToolProposal | None
    diff: str
    """Unified difference from `current` to what is proposed, as lines of JSON; empty if nothing waits."""


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
    """The result for one operation."""

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
    """Each selected operation of the document, in its order."""
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

"""What an import did with each tool that another system offers, and what waits for a person to look at it.

The first import of a tool is trusted. What it offered then is its baseline, by content hash: a tool that is stored with
another content was changed by a person and is never overwritten; an offer with another content is a change that is
classified. What was held back never becomes the baseline.
"""

from collections import Counter
from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Timestamp
from toolcrib.contracts.providers.providers_part import ProviderDefinition
from toolcrib.contracts.tools.changes import ToolChange
from toolcrib.contracts.tools.tools import LifeCycle, ToolDefinition

Adoption: TypeAlias = Literal["new", "unchanged", "changed", "kept", "held", "gone", "returned"]
"""new: stored for the first time. unchanged: offered as before. changed: the change was taken over. kept: a person has
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
    """A change that another system wants, whole, so that a person can read it; it runs nothing."""

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
    """A provider as the last import made it, so that a person's settings are told from the import's."""

    offered: ProviderDefinition


class AdoptedTool(Contract):
    """What became of one tool."""

    tool: str
    adoption: Adoption
    change: ToolChange | None = None
    """From the baseline to what is offered now, if that is different."""
    message: str = ""
    """What a person should know or do."""


class ImportOutcome(Contract):
    """What an import did: every tool that is offered or was, by its adoption."""

    provider: str
    tools: tuple[AdoptedTool, ...] = ()
    """As they are offered; those that are gone last."""
    warnings: tuple[str, ...] = ()
    """Which workflows go on with what they were published with, and which break, because of what was done."""

    def counts(self) -> dict[Adoption, int]:
        """How many tools there are of each adoption, of those that there are."""
        return dict(Counter(found.adoption for found in self.tools))

    @property
    def held(self) -> tuple[AdoptedTool, ...]:
        """The tools whose change waits for a person."""
        return tuple(found for found in self.tools if found.adoption == "held")


class ToolReview(Contract):
    """A tool as it is and as its provider wants it, for the person who decides."""

    tool: str
    provider: str
    status: LifeCycle
    current: ToolDefinition
    changed_by_person: bool
    """Whether `current` is something else than what was adopted from the provider."""
    proposal: ToolProposal | None
    diff: str
    """Unified difference from `current` to what is proposed, as lines of JSON; empty if nothing waits."""

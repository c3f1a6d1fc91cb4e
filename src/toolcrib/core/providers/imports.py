"""What every importer makes: a provider, its tools in groups, and a report of what was not kept."""

import re
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import ImportOutcome, Loss, LossReport, ProviderDefinition, ToolDefinition

MAX_GROUP_DESCRIPTION: Final = 200
"""Characters of what is said about a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that belong together, and that a model can search as one."""

    name: str
    """Lower case with hyphens; the first tag of each of its tools."""
    tools: int
    """How many tools it has."""
    description: str


@dataclass(frozen=True, slots=True)
class ImportedApi:
    """What a document, a server or a database became."""

    provider: ProviderDefinition
    tools: tuple[ToolDefinition, ...]
    """In the order in which they are described; names are unique."""
    groups: tuple[Group, ...]
    """What the tools are folded into; the first tag of a tool names its group."""
    report: LossReport
    outcome: ImportOutcome | None = None
    """What became of each tool in a realm; null as long as it is in none."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Every loss, once."""
        return tuple(self.report.all())


def slug(text: str) -> str:
    """A name in lower case with hyphens, at most 64 characters."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")[:64]

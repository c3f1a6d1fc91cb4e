"""A piece of prompt that many agents share: a tone, a house rule, a description of the company (004, prompt refs)."""

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.base.identity import content_hash
from toolcrib.contracts.providers.providers_part import NAME_PATTERN


class PromptFragment(Contract):
    """A named text. An agent names it, and has its newest revision in every run that begins."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    """For authors: what it is good for."""
    text: str = Field(min_length=1, max_length=100_000)

    @property
    def content_hash(self) -> str:
        """The hash of all this, which names the revision."""
        return content_hash(self.model_dump(mode="json"))

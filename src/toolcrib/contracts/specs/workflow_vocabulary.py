"""The workflow vocabulary: names for tools and for conditions that many workflows use (004, step registration)."""

from typing import Annotated, TypeAlias

from pydantic import AliasChoices, Field

from toolcrib.contracts.base.base import Contract, JsonObject
from toolcrib.contracts.providers.providers_part import NAME_PATTERN

StepName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
"""A name that expressions can read."""


class StepRegistration(Contract):
    """A name for a tool, with mappings that hold where a step gives none. A step names it as its `handler_ref`."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    tool: str = Field(validation_alias=AliasChoices("tool", "tool_ref", "toolRef"))
    """`name` or `name@range`."""
    description: str = ""
    input_mapping: JsonObject = Field(
        default_factory=dict, validation_alias=AliasChoices("input_mapping", "inputMapping")
    )
    """Arguments that a step need not give, with `${…}` as in the step."""
    output_mapping: JsonObject = Field(
        default_factory=dict, validation_alias=AliasChoices("output_mapping", "outputMapping")
    )
    """What a step without an `output` puts out, with `${…}` over `output`; empty for what the tool has put out."""
    enabled: bool = True


class ConditionBinding(Contract):
    """A name for a condition. A step names it as `{"ref": NAME, "input": {…}}`."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    parameters: tuple[StepName, ...] = ()
    """Names that the expression reads, and that each use gives values; nothing else can be read."""
    expression: str
    """`${…}` over the parameters."""
    enabled: bool = True

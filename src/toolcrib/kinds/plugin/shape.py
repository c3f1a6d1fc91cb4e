"""The shape of a plugin tool: the name of a runtime from another package, and that runtime's own configuration."""

from typing import Literal

from pydantic import Field

from toolcrib.contracts.base.base import JsonObject
from toolcrib.contracts.base.implementations import Implementation
from toolcrib.contracts.providers.providers import NAME_PATTERN


class PluginImplementation(Implementation):
    """What a runtime of another package executes, if the operator has named that in `TOOLCRIB_PLUGINS`."""

    kind: Literal["plugin"] = "plugin"
    has_outside_text = True

    runtime: str = Field(pattern=NAME_PATTERN)
    """Name of its entry point in the group `toolcrib.runtimes`."""
    config: JsonObject = Field(default_factory=dict)
    """Checked against the runtime's own JSON Schema when the tool is saved."""

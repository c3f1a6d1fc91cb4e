"""The Python API, and the wiring of all parts.

`crib` has the class `Crib`; the folders have its parts by subject. `container` makes them once and connects them;
`settings` has the operator's choices. Rules of calls, runs and workflows are not here but in the packages below.

Imported by `interfaces` and by applications; imports every package below. Decisions: docs/decisions/0005 (settings),
0041 (structure).
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.api.acting import ActingCrib
    from toolcrib.crib.api.handles import Agent, AgenticTool, CompositeTool, WorkflowHandle
    from toolcrib.crib.api.run_streams import RunStream
    from toolcrib.crib.container.environment import DefinitionOptions, SharingOptions
    from toolcrib.crib.crib import Crib
    from toolcrib.crib.tool_use import use_tools_with_ai
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.container.environment": "DefinitionOptions SharingOptions",
            "toolcrib.crib.api.acting": "ActingCrib",
            "toolcrib.crib.api.handles": "Agent AgenticTool CompositeTool WorkflowHandle",
            "toolcrib.crib.api.run_streams": "RunStream",
            "toolcrib.crib.crib": "Crib",
            "toolcrib.crib.tool_use": "use_tools_with_ai",
        },
    )

__all__ = [
    "ActingCrib",
    "Agent",
    "AgenticTool",
    "CompositeTool",
    "Crib",
    "DefinitionOptions",
    "RunStream",
    "SharingOptions",
    "WorkflowHandle",
    "use_tools_with_ai",
]

"""Workflows of a crib: check, draft, publish and run them.

Imported within `crib` only. Graphs, checks and steps are in `toolcrib.workflows`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.workflows.authoring import Authoring
    from toolcrib.crib.workflows.instances import Instances
    from toolcrib.crib.workflows.workflows import Workflows
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.workflows.authoring": "Authoring",
            "toolcrib.crib.workflows.instances": "Instances",
            "toolcrib.crib.workflows.workflows": "Workflows",
        },
    )

__all__ = ["Authoring", "Instances", "Workflows"]

"""Agents of a crib: definitions, executions, conversations, questions and evaluations.

Imported within `crib` only. Programs and prompts of agents are in `toolcrib.agents`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.agents.agents import Agents
    from toolcrib.crib.agents.conversations import Conversations
    from toolcrib.crib.agents.evaluations import Evaluations
    from toolcrib.crib.agents.executions import Executions
    from toolcrib.crib.agents.questions import Handoffs, Questions
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.agents.agents": "Agents",
            "toolcrib.crib.agents.conversations": "Conversations",
            "toolcrib.crib.agents.evaluations": "Evaluations",
            "toolcrib.crib.agents.executions": "Executions",
            "toolcrib.crib.agents.questions": "Handoffs Questions",
        },
    )

__all__ = ["Agents", "Conversations", "Evaluations", "Executions", "Handoffs", "Questions"]

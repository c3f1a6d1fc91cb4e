"""The last answer of a run that has reached a limit: asked for from what there is, with what was held back for it.

The request is short whatever came before: the task, and the results in short. It offers no tools. If it cannot be
asked, or brings nothing, the run ends with its calls as they are.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from toolcrib.agents.model.client import Desk
from toolcrib.agents.model.previews import calls_in_short, preview
from toolcrib.contracts import ToolEnvelope
from toolcrib.core.runs import clipped
from toolcrib.llm import Request, user

_SYSTEM: Final = (
    "You tell what a task has come to, from the results that you are given and nothing else. The work was stopped "
    "before its end: say what is done, what is known and what is missing, in a few sentences."
)
_LONGEST_TASK: Final = 4000
_LONGEST_FACTS: Final = 8000
_LONGEST_WHY: Final = 500
_MOST_TOKENS: Final = 1000


class Closing:
    """Asks for the last answer of one run.

    Args:
        desk: Where the model is asked.
        task: What the run was asked to do.
    """

    def __init__(self, desk: Desk, task: str) -> None:
        self._desk = desk
        self._task = clipped(task, _LONGEST_TASK)

    def keep(self) -> None:
        """Hold back what the longest such request costs."""
        self._desk.context.keep_answer(self._desk.model, self._request("x" * (_LONGEST_FACTS + _LONGEST_WHY)))

    async def ask(self, done: Sequence[ToolEnvelope], why: str) -> str:
        """The answer; empty if there is none.

        Args:
            done: The calls that were made.
            why: Which limit was reached.
        """
        if not any(found.ok for found in done):
            return ""
        facts = preview(calls_in_short(done), _LONGEST_FACTS)
        request = self._request(f"Results so far: {facts}\n\nStopped because: {clipped(why, _LONGEST_WHY)}")
        call = self._desk.call("answer", "answer", request, new=request.messages, system=_SYSTEM)
        response = await self._desk.context.last_answer(call)
        return "" if response is None else response.message.text.strip()

    def _request(self, facts: str) -> Request:
        most = min(_MOST_TOKENS, self._desk.context.budget.limits.max_tokens_per_call)
        request = self._desk.request((user(f"Task: {self._task}\n\n{facts}"),), system=_SYSTEM)
        return msgspec.structs.replace(request, max_tokens=most)

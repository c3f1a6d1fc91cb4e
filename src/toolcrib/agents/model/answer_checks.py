"""Checks of answers beyond their schema: validators of the types that a program gave its agents as `output_type`.

A type lives in the process that has it. What it refused is in the journal, so that a run that continues elsewhere,
or is replayed, takes the same answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from toolcrib.contracts import Json, ToolRevision
    from toolcrib.core.runs import RunContext

AnswerCheck: TypeAlias = Callable[[Any], str]
"""Says why an answer is refused; empty if it is not."""

JournaledCheck: TypeAlias = Callable[[str, Any], Awaitable[str]]
"""The same for the answer to the model call at a position, as the journal has it."""


class AnswerChecks:
    """The checks of a process, by realm and reference of the agent or agentic tool."""

    def __init__(self) -> None:
        self._checks: dict[tuple[str, str], AnswerCheck] = {}

    def add(self, realm: str, ref: str, check: AnswerCheck | None) -> None:
        """Check answers of `name@version` from now on; null to check nothing."""
        if check is None:
            self._checks.pop((realm, ref), None)
        else:
            self._checks[realm, ref] = check

    def of_run(self, context: RunContext, tool: ToolRevision) -> JournaledCheck:
        """The check of a run's answers."""
        check = self._checks.get((context.run.realm, tool.ref))

        async def judge(position: str, answer: Json) -> str:
            key = f"{position}.refused"
            problem = _known(context, key)
            if not problem and context.ahead is None and check is not None:
                problem = check(answer)
            if problem:
                await context.emit(key, "answer_refused", {"problem": problem})
            return problem

        return judge


async def accept(_position: str, _answer: Json) -> str:
    """Refuses no answer."""
    return ""


def _known(context: RunContext, key: str) -> str:
    """What was refused before, or in a replay of what is replayed."""
    told = context.find_progress(key)
    if told is None:
        ahead = (event for event in context.ahead or () if event.type == "progress_made" and event.key == key)
        told = next((event.data for event in ahead), None)
    return "" if told is None else str(told["problem"])

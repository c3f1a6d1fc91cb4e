"""Planning with a small model: it writes an outline and checks uncertain parts one by one."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final, cast

import orjson

from toolcrib.agents.evidence import EvidenceSources, Finding, Judgement, Known, as_day, value_key, words_of
from toolcrib.agents.model.json_answers import ask_json
from toolcrib.agents.planner import outline_prompts
from toolcrib.agents.planner.outline import Outline
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.contracts import JsonObject
from toolcrib.llm import Message, Text, user

_MOST_VALUES: Final = 4
"""Values that are looked at."""
_MOST_WORDS: Final = 30


class OutlineQuestions:
    """The conversation about one run's outline.

    Args:
        setup: The run.
        outline: How it is written for the run's steps.
        today: The day on which the run began.
        known: Words by which its tools and fields are called.
    """

    def __init__(self, setup: Setup, outline: Outline, today: date, known: frozenset[str]) -> None:
        self._known = known
        self._setup = setup
        self._outline = outline
        self._system = outline_prompts.outline_system(setup, outline)
        self._examples = outline_prompts.outline_examples(outline, today)
        self._messages = self._examples
        self._written: JsonObject = {}
        self._today = today
        self._words_asked: set[str] = set()
        """Words that were looked at."""
        self._calls = 0

    async def first(self, position: str) -> JsonObject:
        """The plan that the first outline means, or another one if it does not say the change; raises as `ask_json`."""
        plan = await self._write(position, outline_prompts.outline_question(self._setup.task, self._today))
        if lacking := self._outline.lacking(self._written):
            self._messages = self._examples
            question = outline_prompts.outline_question(self._setup.task, self._today, lacking=lacking)
            plan = await self._write(f"{position}.changes", question)
        return plan

    async def again(self, position: str, missed: Sequence[str]) -> JsonObject:
        """The plan of another outline, written by a model that is told which words it has missed; raises as `ask_json`.

        It starts afresh: a small model that is to correct its outline forgets what was right in it.
        """
        self._messages = self._examples
        return await self._write(position, outline_prompts.outline_question(self._setup.task, self._today, missed))

    async def after_answer(self, position: str, question: str) -> JsonObject:
        """The plan after a person has answered; raises as `ask_json`."""
        return await self._write(position, question)

    def without(self, denied: Sequence[Finding]) -> JsonObject:
        """The plan without conditions that the task does not say."""
        denied_keys = {(found.field, words_of(found.shown)) for found in denied}
        kept = [
            entry
            for entry in cast("list[JsonObject]", self._written["conditions"])
            if (entry["field"], words_of(str(entry["value"]))) not in denied_keys
        ]
        self._written = {**self._written, "conditions": kept}
        return self._outline.plan(self._written, self._known)

    async def look_at_values(self, position: str, judged: Judgement, known: Known, sources: EvidenceSources) -> None:
        """Ask of each condition that does not stand in its words whether the task says it; raises as `ask_json`.

        Of changes only days are asked about whose year and day stand in their words, beside the name of a month: what
        else a small model sets for words that do not say it is shown to a person.

        Args:
            position: Calls are called `POSITION.value1`, `POSITION.value2`…
            judged: What is known of the plan.
            known: Takes what is said.
            sources: What its values may come from.
        """
        thin = [
            one
            for one in judged.open
            if one.state in {"unsure", "unsaid"} and (one.role == "condition" or _is_day_in_words(one))
        ]
        for found in thin[:_MOST_VALUES]:
            await self._value(position, found, judged, known, sources)

    async def restricting(self, position: str, judged: Judgement, sources: EvidenceSources) -> frozenset[str]:
        """Folded words among the unread ones that restrict which items are meant; raises as `ask_json`.

        Args:
            position: The call is called `POSITION.words1`.
            judged: What is known of the plan.
            sources: What its values may come from.
        """
        words = [word for word in judged.unread if word not in self._words_asked][:_MOST_WORDS]
        if not words:
            return frozenset()
        self._words_asked.update(words)
        self._calls += 1
        answer = await ask_json(
            self._setup,
            f"{position}.words{self._calls}",
            "verification",
            outline_prompts.words_question(sources.task.text, outline_prompts.read_of(judged.findings), words),
            outline_prompts.words_schema(words),
            name="words",
            system=outline_prompts.WORDS_SYSTEM,
            before=outline_prompts.words_examples(),
            repairs=1,
        )
        return frozenset(part for word in words if answer[word] == "restricts" for part in words_of(word))

    async def _write(self, position: str, question: str) -> JsonObject:
        outline = await ask_json(
            self._setup,
            position,
            "error_recovery" if self._written else "planning",
            question,
            self._outline.schema,
            name="outline",
            system=self._system,
            before=self._messages,
        )
        reply = Message("assistant", (Text(orjson.dumps(outline).decode()),))
        self._messages = (*self._messages, user(question), reply)
        self._written = outline
        return self._outline.plan(outline, self._known)

    async def _value(
        self, position: str, found: Finding, judged: Judgement, known: Known, sources: EvidenceSources
    ) -> None:
        key = value_key(found)
        if key in known.denied or key in known.confirmed:
            return
        self._calls += 1
        changes = [one for one in judged.findings if one.role == "change"]
        answer = await ask_json(
            self._setup,
            f"{position}.value{self._calls}",
            "verification",
            outline_prompts.value_question(
                sources.task.text, outline_prompts.read_of(changes) or "none", outline_prompts.subject_of(found)
            ),
            outline_prompts.VALUE_SCHEMA,
            name="value",
            system=outline_prompts.VALUE_SYSTEM,
            before=outline_prompts.value_examples(),
            repairs=1,
        )
        if answer["stated"] == "yes" and sources.task.find(answer["words"]) is not None:
            known.confirmed.add(key)
        else:
            known.denied[key] = ""


def _is_day_in_words(found: Finding) -> bool:
    """Whether the words of a day have its year and its number; which month they name no code can tell."""
    day = as_day(found.leaf.value)
    return day is not None and {day.year, day.day} <= {int(one) for one in re.findall(r"\d+", found.words)}

"""Questions of runs to people, and calls that wait for a client: list them, and send answers and results.

An answer or result is a signal in the journal; nothing here resumes a run. `Executions` accepts the results of a whole
turn.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import orjson
from pydantic_core import from_json

from toolcrib.contracts import (
    ClientResult,
    Conflict,
    InvalidInput,
    Json,
    JsonSchema,
    OpenQuestion,
    Principal,
    Signal,
    ToolEnvelope,
)
from toolcrib.contracts.runs.executions import LONGEST_ANSWER, Answer, answer_signal
from toolcrib.core.engines import Engine
from toolcrib.core.executor import Clock
from toolcrib.core.registry.schema.validation import compile_schema
from toolcrib.core.runs import Result, client_signal, open_question, read_tree, waiting_at, waiting_handoffs
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.infrastructure.store import Journal

_SHOWN: Final = 500
"""Characters of a schema in an error."""


class Questions:
    """The questions of a crib's runs.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._parts = parts
        self._journal = parts.outside.store.journal
        self._actor = actor

    async def of_run(self, run_id: str) -> OpenQuestion | None:
        """What a run asks, or a run that is nested in it; null if nothing.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            result = await deals("Give the Globex deals to Rafael")
            question = await crib.questions.of_run(result.run_id)
            if question:
                print(question.question, [choice.label for choice in question.choices])
        """
        await self._actor.authorize()
        await self._actor.check_run(self._journal, run_id, "read")
        return open_question(await read_tree(self._journal, run_id))

    async def answer(self, run_id: str, answer: str, *, position: str | None = None) -> Result[Json]:
        """Answer the question of a run, and drive the run until it ends or waits again.

        Example:
            result = await deals("Give the Globex deals to Rafael")
            if result.question:
                result = await crib.questions.answer(result.run_id, "Rafael Wang")

        Args:
            run_id: The run, or one that it is nested in.
            answer: The value or the label of one of the question's choices, or words in any language.
            position: The position of the question, or of one that was asked together with it; null for the open one.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: It asks nothing, or something else, or was answered before.
            InvalidInput: The answer is empty, or too long.
        """
        await self.leave(run_id, answer, position=position)
        return await self._parts.result(await self._parts.resume(run_id))

    async def leave(self, run_id: str, answer: str, *, position: str | None = None) -> None:
        """Answer a question, and let a serving engine resume the run. The first answer counts; raises as `answer`.

        Example:
            result = await deals("Give the Globex deals to Rafael")
            await crib.questions.leave(result.run_id, "Rafael Wang")
        """
        if not answer.strip() or len(answer) > LONGEST_ANSWER:
            msg = f"an answer has 1 to {LONGEST_ANSWER} characters, and this has {len(answer.strip())}; say it shorter"
            raise InvalidInput(msg if answer.strip() else "the answer is empty; name a choice, or answer in words")
        who = await self._actor.authorize()
        await self._actor.check_run(self._journal, run_id, "execute")
        first = open_question(await read_tree(self._journal, run_id))
        asked = () if first is None else (first, *first.together_with)
        question = next((each for each in asked if position in {None, each.position}), None)
        if question is None:
            open_text = "nothing" if first is None else f"at {first.position!r}: {first.question}"
            msg = f"run {run_id} does not ask that; it asks {open_text}; look at the run for how it stands"
            raise Conflict(msg)
        signal = Signal(
            name=answer_signal(question.position),
            payload=Answer(answer=_value(question, answer.strip())).payload(),
            made_by=who.id,
            at=self._parts.outside.clock.now(),
        )
        if not await self._parts.engine.signal(question.run_id, signal):
            msg = (
                f"the question at {question.position!r} of run {question.run_id} was answered; the first answer counts"
            )
            raise Conflict(msg)


def _value(question: OpenQuestion, answer: str) -> str:
    """The value of the choice that an answer names, JSON that fits the schema of the answer, else its words.

    Raises:
        InvalidInput: It does not fit the schema.
    """
    if question.answer_schema is not None:
        return _as_asked(question.answer_schema, answer)
    folded = answer.casefold()
    named = (
        choice.value
        for choice in question.choices
        if folded in {choice.value.casefold(), choice.label.strip().casefold()}
    )
    return next(named, answer)


def _as_asked(schema: JsonSchema, answer: str) -> str:
    """The JSON that an answer is, or its words as a JSON text."""
    compiled = compile_schema(schema)
    meant: list[Json] = [answer]
    with suppress(ValueError):
        meant.insert(0, from_json(answer, allow_inf_nan=False))
    fits = next((value for value in meant if not compiled.problems(value)), None)
    if fits is None and compiled.problems(None):
        problems = "; ".join(map(str, compiled.problems(meant[0])))
        shape = orjson.dumps(schema).decode()[:_SHOWN]
        raise InvalidInput(f"the answer does not fit what is asked: {problems}; answer with JSON of the schema {shape}")
    return orjson.dumps(fits).decode()


class Handoffs:
    """The calls of a crib's runs that wait for a client.

    Args:
        journal: Has the runs.
        engine: Takes the signals.
        clock: Time.
    """

    def __init__(self, journal: Journal, engine: Engine, clock: Clock) -> None:
        self._journal = journal
        self._engine = engine
        self._clock = clock

    async def of_run(self, run_id: str) -> Sequence[ToolEnvelope]:
        """Prepared calls of a run that wait for a client."""
        signals = await self._journal.signals(run_id)
        return waiting_handoffs(await self._journal.events(run_id), signals.keys())

    async def return_result(self, run_id: str, position: str, result: ClientResult, who: Principal) -> bool:
        """Bring back what a client did. The first result counts, as often as its client sends it.

        Raises:
            Conflict: No call at this position waits for a client.
        """
        known = (await self._journal.signals(run_id)).get(client_signal(position))
        if known is not None and known.payload == result.model_dump(mode="json"):
            return known.made_by == who.id
        waiting = {prepared.position: prepared for prepared in await self.of_run(run_id)}
        waiting_at(run_id, position, waiting, "a client")
        signal = Signal(
            name=client_signal(position),
            payload=result.model_dump(mode="json"),
            made_by=who.id,
            at=self._clock.now(),
        )
        return await self._engine.signal(run_id, signal)

"""Python tools that ask who has started the run."""

from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import Ask, Crib, Limits, ScriptedModel, ToolContext, tool
from toolcrib.contracts import Conflict, InvalidInput
from toolcrib.contracts.runs.executions import answer_signal
from toolcrib.core.runs import waiting_question
from toolcrib.testing import calls, together

ASKING = pytest.mark.requirement("runtimes.asking")


class Stage(Enum):
    OPEN = "open"
    WON = "won"


class Contact(BaseModel):
    name: str
    age: int = 0


class Desk:
    """A tool that asks twice, and how often it began."""

    def __init__(self) -> None:
        self.begun = 0

        @tool(side_effects="reads")
        async def book(company: str, context: ToolContext) -> dict[str, Any]:
            """Book a meeting."""
            self.begun += 1
            person = await context.ask(f"Whom at {company}?")
            stage = await context.ask("Which stage?", Stage)
            contact = await context.ask("Who else?", Contact)
            return {"person": person, "stage": stage, "contact": contact}

        self.book = book


@ASKING
@pytest.mark.parametrize("store", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_a_tool_asks_and_goes_on_with_the_answers(store: str, tmp_path: Path):
    desk = Desk()
    async with Crib(store.format(folder=tmp_path)) as crib:
        crib.add(desk.book)
        asked = await crib.invoke("book", {"company": "Acme"})
        second = await crib.questions.answer(asked.run_id, "Ann")
        with pytest.raises(InvalidInput, match=r"does not fit what is asked: .*lost.* answer with JSON of the schema"):
            await crib.questions.answer(asked.run_id, "lost")
        third = await crib.questions.answer(asked.run_id, "won")
        done = await crib.questions.answer(asked.run_id, '{"name": "Bo"}')
        replayed = await crib.replay(asked.run_id)

    assert (asked.status, second.status, third.status) == ("awaiting_answer",) * 3
    assert asked.question is not None
    assert (asked.question.question, asked.question.reason, asked.question.position) == (
        "Whom at Acme?",
        "tool",
        "call.ask1",
    )
    assert third.question is not None
    assert third.question.answer_schema is not None
    assert third.question.answer_schema["required"] == ["name"]
    assert done.output == {"person": "Ann", "stage": "won", "contact": {"name": "Bo", "age": 0}}
    assert desk.begun == 4
    assert replayed.same, replayed.divergence


@ASKING
async def test_another_process_goes_on_with_the_answer(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/crib.db"
    async with Crib(store) as crib:
        crib.add(Desk().book)
        asked = await crib.invoke("book", {"company": "Acme"})
    async with Crib(store) as crib:
        desk = Desk()
        crib.add(desk.book)
        await crib.questions.answer(asked.run_id, "Ann")
        await crib.questions.answer(asked.run_id, "open")
    async with Crib(store) as crib:
        crib.add(desk.book)
        done = await crib.questions.answer(asked.run_id, '{"name": "Bo", "age": 3}')
        replayed = await crib.replay(asked.run_id)

    assert done.output == {"person": "Ann", "stage": "open", "contact": {"name": "Bo", "age": 3}}
    assert replayed.same, replayed.divergence


@ASKING
async def test_a_tool_of_an_agent_asks_who_talks_to_the_agent():
    model = ScriptedModel([calls("book", company="Acme"), "Booked."])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        crib.add(Desk().book)
        asked = await crib.agent("clerk", model="scripted:m", tools=["book"])("Book Acme")
        for answer in ("Ann", "won", '{"name": "Bo"}'):
            done = await crib.questions.answer(asked.run_id, answer)
        replayed = await crib.replay(asked.run_id)

    assert asked.status == "awaiting_answer"
    assert done.output == "Booked."
    assert replayed.same, replayed.divergence


@ASKING
async def test_calls_beside_one_that_asks_go_on_and_count_once():
    looked: list[str] = []

    @tool(side_effects="writes", idempotent=True)
    async def note(text: str, context: ToolContext) -> str:
        """Writes a note."""
        sure = await context.ask("Sure?", bool)
        return f"{text} {sure}"

    @tool(side_effects="writes", cost_usd_per_call=Decimal("0.5"))
    async def look(text: str) -> str:
        """Looks."""
        looked.append(text)
        return text

    both = together("", calls("note", text="a"), calls("look", text="b"), calls("note", text="c"))
    model = ScriptedModel([both, "Done."])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        crib.add(note, look)
        limits = Limits(max_tool_calls=3)
        asked = await crib.agent("clerk", model="scripted:m", tools=["note", "look"], limits=limits)("Go")
        again = await crib.questions.answer(asked.run_id, "true")
        done = await crib.questions.answer(asked.run_id, "false")
        replayed = await crib.replay(asked.run_id)

    assert (asked.status, again.status, done.status) == ("awaiting_answer", "awaiting_answer", "completed")
    assert sorted(str(call.output) for call in done.envelopes) == ["a True", "b", "c False"]
    assert looked == ["b"]
    assert replayed.same, replayed.divergence


@ASKING
async def test_a_run_inside_of_another_one_has_nobody_to_ask():
    step = {"name": "book", "tool": "book", "input": {"company": "Acme"}}
    async with Crib("memory://") as crib:
        crib.add(Desk().book)
        crib.workflow("inner", steps=[step])
        outer = crib.workflow("outer", steps=[{"name": "sub", "tool": "inner"}])
        alone = await crib.invoke("inner", {})
        nested = await outer()

    assert alone.status == "awaiting_answer"
    assert nested.error is not None
    assert "There is no person to ask" in nested.error.message


@ASKING
async def test_what_may_not_ask_is_told_so():
    @tool(side_effects="writes")
    async def pay(context: ToolContext) -> str:
        """Pays."""
        return await context.ask("How much?")

    @tool(side_effects="reads")
    async def strange(context: ToolContext) -> str:
        """Asks for what JSON cannot describe."""
        return str(await context.ask("Which?", Desk))

    @tool(side_effects="reads")
    async def long(context: ToolContext) -> str:
        """Asks too much."""
        return await context.ask("?" * 2_001)

    async with Crib("memory://") as crib:
        crib.add(pay, strange, long)
        refused = [(await crib.call(name)).error for name in ("pay", "strange", "long")]

    for error, words in zip(refused, ("may not ask", "JSON cannot describe", "2000 is the limit"), strict=True):
        assert error is not None
        assert words in error.message


@ASKING
@pytest.mark.parametrize("store", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_questions_that_are_asked_together_are_answered_in_any_order(store: str, tmp_path: Path):
    @tool(side_effects="reads")
    async def invite(context: ToolContext) -> list[Any]:
        """Invite somebody."""
        return await context.ask_all(Ask("Who?", name="who"), Ask("How many seats?", int), Ask.of_model("Greet them"))

    async with Crib(store.format(folder=tmp_path)) as crib:
        crib.add(invite)
        asked = await crib.invoke("invite", {})
        first = await crib.questions.of_run(asked.run_id)
        assert first is not None
        seats, greeting = first.together_with
        await crib.questions.leave(asked.run_id, "2", position=seats.position)
        await crib.questions.leave(asked.run_id, "Ann", position=first.position)
        third = await crib.questions.of_run(asked.run_id)
        with pytest.raises(Conflict):
            await crib.questions.leave(asked.run_id, "3", position=seats.position)
        done = await crib.questions.answer(asked.run_id, "Hello!")
        replayed = await crib.replay(asked.run_id)

    assert (first.name, seats.answer_schema, greeting.asked_of) == ("who", {"type": "integer"}, "client_model")
    assert third is not None
    assert (third.position, third.together_with) == (greeting.position, ())
    assert done.summary.output == ["Ann", 2, "Hello!"]
    assert replayed.same, replayed.divergence


@ASKING
async def test_the_model_and_the_roots_of_a_client_are_asked_for_like_a_person_where_no_client_is():
    @tool(side_effects="reads")
    async def look(context: ToolContext) -> list[Any]:
        """Look around."""
        return [await context.ask_model("Where?"), await context.ask_roots()]

    async with Crib("memory://") as crib:
        crib.add(look)
        asked = await crib.invoke("look", {})
        await crib.questions.answer(asked.run_id, "here")
        with pytest.raises(InvalidInput, match="does not fit"):
            await crib.questions.answer(asked.run_id, "[{}]")
        done = await crib.questions.answer(asked.run_id, '[{"uri": "file:///a"}]')
    assert done.summary.output == ["here", [{"uri": "file:///a"}]]


@ASKING
async def test_a_question_whose_answer_has_arrived_and_was_not_read_yet_is_not_asked_again():
    desk = Desk()
    async with Crib("memory://") as crib:
        crib.add(desk.book)
        asked = await crib.invoke("book", {"company": "Acme"})
        events = await crib.store.journal.events(asked.run_id)

    found = waiting_question(events, ())
    assert found is not None
    assert waiting_question(events, {answer_signal(found.position)}) is None

"""One result for whatever runs: its output, what it waits for, what it used, and how it shows itself."""

import operator
import subprocess
import sys
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from toolcrib import Crib, Result, RunNotCompleted, ScriptedModel, tool
from toolcrib.contracts import AgentDefinition, LLMConfig, PinnedHandle, PinSelector, Principal, ToolEnvelope
from toolcrib.contracts.base.display import html_table
from toolcrib.llm import Message, Text, ToolCall, ToolResult
from toolcrib.sync import Crib as SynchronousCrib
from toolcrib.testing import approve, new_crib

pytestmark = pytest.mark.requirement("results.one_shape")
MODEL = "scripted:m"
HOSTILE = '<script>alert("1")</script>'


@tool(side_effects="reads")
async def find(text: str) -> str:
    """Finds."""
    return f"found {text}"


@tool(side_effects="writes", requires_confirmation=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def calling(name: str, arguments: str, words: str = "") -> Message:
    return Message("assistant", (*((Text(words),) if words else ()), ToolCall("c1", name, arguments)))


def crib_with(*answers: Message | str) -> Crib:
    crib = new_crib(models={MODEL: ScriptedModel(answers)})
    crib.add(find, pay)
    return crib


async def test_every_kind_gives_its_answer_as_output_and_says_what_ran():
    async with crib_with("Hello.", "Done.") as crib:
        desk = crib.agent("desk", model=MODEL)
        helper = crib.agentic_tool("helper", mode="agentic", model=MODEL, tools=["find"])
        flow = crib.workflow("flow", steps=[{"name": "one", "tool": "find", "input": {"text": "a"}}])
        results = [
            await crib.invoke(find, {"text": "a"}, session_id="s"),
            await desk("Hi", session_id="s"),
            await helper("Help"),
            await flow(),
        ]

    assert [(each.kind, each.name, each.ok) for each in results] == [
        ("tool", "find", True),
        ("agent", "desk", True),
        ("agentic", "helper", True),
        ("workflow", "flow", True),
    ]
    assert [each.output for each in results] == ["found a", "Hello.", {"summary": "Done."}, {"one": "found a"}]
    assert [each.unwrap() for each in results] == [each.output for each in results]
    assert results[1].summary.output == {"response": "Hello."}
    assert (results[0].session_id, results[1].session_id) == ("s", "s")
    assert results[1].conversation_id is not None
    assert results[1].iterations == 1
    assert results[1].tokens == results[1].usage.input_tokens + results[1].usage.output_tokens > 0


async def test_the_messages_of_a_run_are_those_of_its_journal():
    async with crib_with(calling("find", '{"text": "a"}', "I look."), "It is a.") as crib:
        desk = crib.agent("desk", model=MODEL, tools=["find"], system_prompt="Be brief.")
        result = await desk("Which?")

    asked, called, told, answered = result.messages
    assert (asked.role, asked.text) == ("user", "Which?")
    assert (called.text, [call.name for call in called.calls]) == ("I look.", ["find"])
    assert told.parts == (ToolResult("c1", "find", '"found a"'),)
    assert (answered.role, answered.text) == ("assistant", "It is a.")
    assert result.system_prompt.startswith("Be brief.")


async def test_a_failed_call_is_an_error_in_the_messages():
    async with crib_with(calling("find", "{}"), "I cannot.") as crib:
        result = await crib.agent("desk", model=MODEL, tools=["find"])("Which?")

    [told] = result.messages[2].parts
    assert isinstance(told, ToolResult)
    assert told.is_error


async def test_a_run_that_waits_has_its_approvals_also_those_of_nested_runs():
    answers = [calling("desk", '{"message": "pay"}'), calling("pay", '{"amount": 5}'), "Paid.", "All paid."]
    async with crib_with(*answers) as crib:
        desk = crib.agent("desk", model=MODEL, tools=["pay"])
        boss = crib.agent("boss", model=MODEL, delegates=[desk])
        waiting = await boss("Pay 5")
        [asked] = waiting.approvals
        with pytest.raises(RunNotCompleted, match=r"awaiting_approval; decide on `result.approvals`") as caught:
            waiting.unwrap()
        done = await approve(crib, waiting)
        after = await boss.result(waiting.run_id)

    assert [part for message in waiting.messages for part in message.parts if isinstance(part, ToolResult)] == []
    assert (waiting.ok, waiting.output, waiting.stop_reason) == (False, None, None)
    assert (asked.name, asked.input, asked.run_id != waiting.run_id) == ("pay", {"amount": 5}, True)
    assert (caught.value.status, caught.value.run_id, caught.value.error) == ("awaiting_approval", waiting.run_id, None)
    assert waiting.tokens > 0
    assert waiting.cost_usd == 0
    assert (done.output, done.approvals, after.output) == ("All paid.", (), "All paid.")


async def test_unwrap_of_a_failure_names_run_status_cause_and_next_step():
    async with crib_with() as crib:
        result = await crib.invoke("find", {})
    with pytest.raises(RunNotCompleted) as caught:
        result.unwrap()

    assert caught.value.error == result.error
    for part in (result.run_id, "'find'", "failed", "VALIDATION_ERROR", f"toolcrib run trace {result.run_id}"):
        assert part in str(caught.value)


async def test_pinned_handles_are_in_the_result_of_an_agent():
    pins = (PinnedHandle(name="found", selector=PinSelector(tool="find")),)
    async with crib_with(calling("find", '{"text": "a"}'), "It is a.") as crib:
        await crib.agents.save(
            AgentDefinition.model_validate(
                {"name": "desk", "llm": LLMConfig(model=MODEL), "tools": ["find"], "pins": pins}
            )
        )
        result = await crib.invoke("desk", {"message": "Which?"})

    assert result.handles == {"found": "found a"}


async def test_a_conversation_and_an_answer_continue_with_the_same_shape():
    async with crib_with("One.", "Two.") as crib:
        first = await crib.agent("desk", model=MODEL)("Hi")
        second = await crib.executions.continue_(first.conversation_id or "", "And?")

    assert isinstance(second, Result)
    assert (second.output, second.conversation_id) == ("Two.", first.conversation_id)


@pytest.mark.requirement("results.left_open")
async def test_a_crib_that_was_left_open_in_a_notebook_warns_how_to_close_it(monkeypatch: pytest.MonkeyPatch):
    crib = crib_with()
    await crib.invoke("find", {"text": "a"})
    crib.__del__()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with pytest.warns(ResourceWarning, match=r"was left open; write `async with Crib\(...\) as crib:`"):
        crib.__del__()
    await crib.close()
    crib.__del__()


@pytest.mark.requirement("results.left_open")
def test_a_program_that_leaves_its_crib_open_ends_quietly():
    program = """
import asyncio
from toolcrib import Crib
async def main():
    crib = Crib("memory://")
    crib.add(main_tool)
    print((await crib.invoke("main_tool", {})).output)
def main_tool() -> int:
    return 5
asyncio.new_event_loop().run_until_complete(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert (ended.stdout, ended.stderr) == ("5\n", "")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def drawn_by(shown: object) -> str:
    """What a notebook draws."""
    draw = operator.methodcaller("_repr_html_")
    return str(draw(shown))


@pytest.mark.requirement("results.shown")
async def test_results_and_traces_draw_themselves_without_running_what_they_show():
    async with crib_with(calling("find", f'{{"text": "{HOSTILE.replace(chr(34), chr(39))}"}}'), HOSTILE) as crib:
        result = await crib.agent("desk", model=MODEL, tools=["find"])("Which?")
        trace = await crib.trace(result.run_id)
        call = await crib.call("find", text=HOSTILE)

    for shown, title in ((result, "tool call find"), (trace, "tool call find"), (call, "call find")):
        drawn = _Tags()
        drawn.feed(drawn_by(shown))
        assert drawn.tags <= {"div", "strong", "table", "tr", "th", "td"}
        assert HOSTILE in drawn.text
        assert title in drawn.text
        terminal = StringIO()
        Console(file=terminal, width=200).print(shown)
        assert title in terminal.getvalue()


@pytest.mark.requirement("results.shown")
def test_a_function_tool_and_a_synchronous_crib_say_what_they_are_also_when_closed():
    @tool(side_effects="reads")
    async def find(text: str) -> str:
        """Find."""
        return text

    with SynchronousCrib("memory://") as crib:
        opened = repr(crib)

    assert repr(find).startswith("FunctionTool('find', function=tests.unit.crib.test_results.")
    assert opened.startswith("Crib(store=MemoryStore, principal=Principal(")
    assert repr(crib) == opened


@pytest.mark.requirement("results.shown")
async def test_what_is_large_is_shown_in_short():
    large = "x" * 1_000_000

    @tool(side_effects="none")
    async def big() -> list[str]:
        """Large."""
        return [large] * 3

    async with new_crib() as crib:
        crib.add(big)
        result = await crib.invoke("big", {})
        [envelope] = result.envelopes
        shown = [
            repr(result),
            repr(result.trace),
            repr(envelope),
            repr(crib),
            repr(crib.acting_as(Principal(id="ann"))),
        ]
        many = repr(Principal(id="ann", grants=tuple(f"ai://tools/t{n}/execute" for n in range(1000))))

    assert isinstance(envelope, ToolEnvelope)
    assert all(len(each) < 1500 for each in [*shown, many])
    assert "\n" not in "".join(shown)
    assert len(drawn_by(result)) < 10_000
    assert repr(result).startswith(f"Result(name='big', run_id='{result.run_id}', status='completed', output=[")
    assert "ann" in shown[-1]


async def test_a_trace_shows_nested_steps_failures_and_no_more_than_200_rows():
    @tool(side_effects="none")
    async def check(number: int) -> int:
        """Fails for odd numbers."""
        if number % 2:
            raise ValueError(f"odd {number}")
        return number

    items = {"items": "${input.numbers}", "on_item_error": "continue"}
    each = {"name": "each", "tool": "check", "for_each": items, "input": {"number": "${item}"}}
    async with crib_with() as crib:
        crib.add(check)
        numbers = {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}}}
        inner = crib.workflow("inner", input_schema=numbers, steps=[each])
        outer = crib.workflow(
            "outer",
            input_schema=numbers,
            steps=[{"name": "sub", "tool": "inner", "input": {"numbers": "${input.numbers}"}}],
        )
        many = drawn_by(await crib.trace((await inner(numbers=list(range(230)))).run_id))
        nested = drawn_by(await crib.trace((await outer(numbers=[1])).run_id))
    assert "more steps: " in many
    assert many.count("<tr>") <= 220
    assert "odd 1" in nested
    assert "padding-left:1.5em" in nested


async def test_what_a_model_was_told_of_a_call_that_failed_or_was_never_made():
    @tool(side_effects="none")
    async def count(text: str) -> int:
        """Count letters."""
        return len(text)

    answers = (calling("find_tools", "{}"), calling("find", "{}"), calling("find", " " * 2_000_000), "Sorry.")
    async with crib_with(*answers) as crib:
        desk = crib.agent("desk", model=MODEL, tools=[find, count], max_tools_in_context=1)
        result = await desk("Find it")
    told = [part for message in result.messages for part in message.parts if isinstance(part, ToolResult)]
    assert [each.is_error for each in told] == [True, True, True]
    assert "find_tools" in told[0].text
    assert "characters" in told[2].text
    assert result.cost_unknown is False


def test_facts_without_rows_are_one_table():
    assert html_table("Nothing", [("a", 1)]).count("<table>") == 1

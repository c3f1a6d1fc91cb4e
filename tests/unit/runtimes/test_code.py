"""Code tools from end to end: their calls are calls of a run, their failures are envelopes."""

from collections.abc import AsyncIterator

import pytest

from toolcrib import Crib, DefinitionOptions, code_tool, tool
from toolcrib.contracts import ChildStarted, ErrorCode, Reason, RunStatus, SandboxLimits, ToolDefinition, ToolEnvelope
from toolcrib.core.runs import Result
from toolcrib.infrastructure.sandbox import MontyBackend, Sandbox

pytestmark = pytest.mark.requirement("code.calls")

NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "default": 2}}}


@tool(name="crm.look-up", side_effects="reads")
async def look_up(id: int, detail: str = "short") -> dict[str, object]:  # noqa: A002 - an argument's name
    """Look up."""
    if id < 0:
        msg = "no such thing"
        raise ValueError(msg)
    return {"id": id, "detail": detail}


@tool(requires_confirmation=True)
async def act(what: str) -> str:
    """Act."""
    return f"did {what}"


@pytest.fixture
async def crib() -> AsyncIterator[Crib]:
    async with Crib("memory://") as made:
        made.add(look_up, act)
        yield made


async def call(crib: Crib, definition: ToolDefinition, **arguments: object) -> ToolEnvelope:
    await crib.save(definition)
    return await crib.call(definition.name, arguments)


def refused(envelope: ToolEnvelope) -> tuple[ErrorCode, Reason | None]:
    assert envelope.error is not None
    return envelope.error.code, envelope.error.reason


async def test_code_calls_its_tools_as_functions_and_returns_json(crib: Crib):
    source = "def main(n):\n    print('looking')\n    return [crm_look_up(id=i)['id'] for i in range(n)]\n"

    envelope = await call(crib, code_tool("all", source, input_schema=NUMBER, tools=["crm.look-up"]))

    assert envelope.output == [0, 1]
    assert envelope.metadata["stdout"] == "looking\n"
    assert envelope.metadata["tool_calls"] == 2
    assert envelope.metadata["sandbox"].keys() == {"wall_s", "cpu_s", "memory_peak_mb"}


@pytest.mark.parametrize(
    "definition",
    [
        code_tool(
            "caught",
            "def main():\n    try:\n        crm_look_up(id=-1)\n    except RuntimeError as e:\n        return str(e)\n",
            tools=["crm.look-up"],
        ),
        code_tool(
            "caught",
            "def main():\n    try:\n        crm_look_up(id=-1)\n    except ToolError as e:\n        return str(e)\n",
            tools=["crm.look-up"],
            interpreter="cpython",
        ),
        code_tool(
            "caught",
            "function main() { try { crm_look_up({id: -1}) } catch (e) { return e.message } }",
            tools=["crm.look-up"],
            language="javascript",
        ),
    ],
    ids=["monty", "cpython", "javascript"],
)
async def test_a_tool_that_fails_raises_in_the_code_which_may_catch_it(crib: Crib, definition: ToolDefinition):
    envelope = await call(crib, definition)

    assert envelope.output == "UNKNOWN: tool 'crm.look-up' raised ValueError: no such thing"


async def test_a_tool_whose_failure_is_not_caught_ends_the_code_with_its_line(crib: Crib):
    envelope = await call(crib, code_tool("x", "def main():\n    crm_look_up(id=-1)\n", tools=["crm.look-up"]))

    assert refused(envelope) == (ErrorCode.SANDBOX_ERROR, Reason.CODE_FAILED)
    assert envelope.error is not None
    assert "failed in line 2: RuntimeError: UNKNOWN: tool 'crm.look-up' raised" in envelope.error.message


async def test_arguments_of_the_code_are_validated_like_anybody_elses(crib: Crib):
    source = (
        "def main():\n    try:\n        crm_look_up(id='one')\n    except RuntimeError as e:\n        return str(e)\n"
    )

    envelope = await call(crib, code_tool("x", source, tools=["crm.look-up"]))

    assert envelope.output.startswith("VALIDATION_ERROR: the arguments of 'crm.look-up' are not valid")


DEEP = "def main():\n    v = 1\n    for _ in range(300):\n        v = [v]\n    return "


@pytest.mark.parametrize("interpreter", ["monty", "cpython"])
@pytest.mark.parametrize(
    ("end", "told"), [("v\n", "main returned a value that is not JSON"), ("crm_look_up(id=v)\n", "failed in line 5")]
)
async def test_what_is_too_deep_to_be_kept_is_an_error_of_the_code(crib: Crib, interpreter: str, end: str, told: str):
    definition = code_tool("x", DEEP + end, tools=["crm.look-up"], interpreter=interpreter)  # pyright: ignore[reportArgumentType] - a parameter of the test

    envelope = await call(crib, definition)

    assert refused(envelope) == (ErrorCode.SANDBOX_ERROR, Reason.CODE_FAILED)
    assert envelope.error is not None
    assert told in envelope.error.message


@pytest.mark.requirement("code.policy")
async def test_code_may_call_its_tools_only(crib: Crib):
    source = "import os, struct, json\ndef main():\n    return ask('act', {'what': 'harm'})\n"
    stolen = (
        "def main():\n    channel = crm_look_up.__closure__[0].cell_contents\n"
        "    try:\n        channel.ask('act', {'what': 'harm'})\n    except ToolError as e:\n        return str(e)\n"
    )

    named = await call(crib, code_tool("named", source, tools=["crm.look-up"], interpreter="cpython"))
    forged = await call(crib, code_tool("forged", stolen, tools=["crm.look-up"], interpreter="cpython"))

    assert refused(named) == (ErrorCode.SANDBOX_ERROR, Reason.CODE_FAILED)
    assert forged.output == "POLICY_DENIED: 'act' is none of the code's tools"


@pytest.mark.requirement("code.policy")
async def test_code_that_only_reads_cannot_write_through_a_tool(crib: Crib):
    source = "def main():\n    try:\n        act(what='it')\n    except RuntimeError as e:\n        return str(e)\n"

    envelope = await call(crib, code_tool("x", source, tools=["act"], side_effects="reads"))

    assert "POLICY_DENIED: tool 'act' writes and this run allows at most 'reads'" in envelope.output


@pytest.mark.requirement("code.quotas")
@pytest.mark.parametrize(
    ("source", "limits", "expected", "quota"),
    [
        ("def main():\n    while True:\n        pass\n", SandboxLimits(cpu_s=0.3), ErrorCode.SANDBOX_ERROR, "cpu_s"),
        (
            "import time\ndef main():\n    time.sleep(9)\n",
            SandboxLimits(wall_s=0.3),
            ErrorCode.TIMEOUT,
            "wall_s",
        ),
        ("def main():\n    return 'x' * 10**10\n", SandboxLimits(), ErrorCode.SANDBOX_ERROR, "memory_mb"),
        ("def main():\n    return 'x' * 2000\n", SandboxLimits(output_kb=1), ErrorCode.SANDBOX_ERROR, "output_kb"),
        (
            "def main():\n    return [crm_look_up(id=i) for i in range(9)]\n",
            SandboxLimits(tool_calls=2),
            ErrorCode.SANDBOX_ERROR,
            "tool_calls",
        ),
    ],
)
async def test_a_quota_that_is_met_is_named(
    crib: Crib, source: str, limits: SandboxLimits, expected: ErrorCode, quota: str
):
    envelope = await call(crib, code_tool("x", source, limits=limits, tools=["crm.look-up"]))

    assert refused(envelope) == (expected, Reason.SANDBOX_LIMIT_EXCEEDED)
    assert envelope.error is not None
    assert envelope.error.details is not None
    assert envelope.error.details["quota"] == quota
    assert f"{quota}={getattr(limits, quota):g}" in envelope.error.message


@pytest.mark.requirement("code.unavailable")
async def test_without_a_sandbox_that_will_do_nothing_is_run():
    async with Crib(
        "memory://", definitions=DefinitionOptions(sandbox=Sandbox((MontyBackend(),), minimum="kernel"))
    ) as crib:
        envelope = await call(crib, code_tool("x", "def main():\n    return 1\n"))

    assert refused(envelope) == (ErrorCode.SANDBOX_ERROR, Reason.SANDBOX_UNAVAILABLE)
    assert envelope.error is not None
    assert "isolation 'kernel'; available: monty with isolation 'language'" in envelope.error.message


WAITING = """
import random
def main():
    chance = random.randint(1, 10**9)
    found = crm_look_up(id=chance)
    return [found['id'] == chance, act(what=str(chance))]
"""


def child_of(result: Result) -> str:
    return next(event.event.child_run_id for event in result.events if isinstance(event.event, ChildStarted))


@pytest.mark.requirement("code.resume")
@pytest.mark.parametrize("interpreter", ["monty", "cpython"])
async def test_code_whose_call_waits_for_a_person_is_carried_on_with_the_same_random_numbers(
    crib: Crib, interpreter: str
):
    definition = code_tool("x", WAITING, tools=["crm.look-up", "act"], interpreter=interpreter)  # pyright: ignore[reportArgumentType] - a parameter of the test
    await crib.save(definition)
    waiting = await crib.invoke("x", {})
    status: RunStatus = "awaiting_approval"
    assert waiting.summary.status == status

    child = child_of(waiting)
    asked = (await crib.pending_approvals(child))[0]
    await crib.decide(child, "c2", approve=True)
    ended = await crib.resume(waiting.run_id)

    assert ended.output == [True, f"did {asked.input['what']}"]
    assert len((await crib.trace(child)).steps) >= 2


@pytest.mark.requirement("code.resume")
async def test_code_that_asks_for_something_else_when_it_is_carried_on_is_stopped(crib: Crib):
    source = WAITING.replace("import random", "import os").replace(
        "random.randint(1, 10**9)", "int.from_bytes(os.urandom(6), 'big')"
    )
    await crib.save(code_tool("x", source, tools=["crm.look-up", "act"], interpreter="cpython"))
    waiting = await crib.invoke("x", {})

    await crib.decide(child_of(waiting), "c2", approve=True)
    ended = await crib.resume(waiting.run_id)

    assert ended.error is not None
    assert "has called 'crm.look-up' with other arguments before" in ended.error.message


@pytest.mark.requirement("code.definition")
async def test_an_import_that_monty_has_not_is_told_with_the_way_out(crib: Crib):
    envelope = await call(crib, code_tool("x", "import statistics\ndef main():\n    return 1\n"))

    assert envelope.error is not None
    assert "set interpreter to 'cpython'" in envelope.error.message

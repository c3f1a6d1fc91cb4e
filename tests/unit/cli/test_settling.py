"""On the command line: what a person says of calls of which nobody knows whether they took effect."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, tool
from toolcrib.contracts import Conflict, Json


@tool(side_effects="writes", on_unknown="ask")
async def ask_first(text: str) -> dict[str, str]:
    """Send a letter, and hear nothing of it; a person is asked."""
    raise TimeoutError(text)


@tool(side_effects="writes")
async def send(text: str) -> dict[str, str]:
    """Send a letter, and hear nothing of it."""
    raise TimeoutError(text)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


async def wait(store: str) -> str:
    """A run that waits for an answer."""
    async with Crib(store) as crib:
        crib.add(ask_first)
        with pytest.raises(Conflict):
            await crib.call("ask_first", {"text": "hello"})
        [found] = (await crib.approvals.page()).items
        return found.run_id


async def resume(store: str, run_id: str) -> Json:
    """What the call of a run has brought."""
    async with Crib(store) as crib:
        crib.add(ask_first)
        return (await crib.resume(run_id)).envelopes[-1].output


async def fail(store: str) -> tuple[str, str]:
    """A run that has ended, and the position of its call."""
    async with Crib(store) as crib:
        crib.add(send)
        run_id = (await crib.call("send", {"text": "hello"})).run_id
        assert run_id is not None
        [step] = (await crib.trace(run_id)).model_dump()["steps"]
        return run_id, step["position"]


@pytest.mark.requirement("effects.ask")
def test_the_inbox_is_told_that_a_call_took_effect_and_its_run_goes_on(store: str):
    run_id = asyncio.run(wait(store))
    [found] = json.loads(toolcrib("approval", "list", "--json", store=store).stdout)
    approval = found["approval_id"]

    unsaid = toolcrib("approval", "settle", approval, store=store)
    wrong = toolcrib("approval", "settle", approval, "--happened", "--output", '{"sent": 7}', store=store)
    done = toolcrib("approval", "settle", approval, "--happened", "--output", '{"sent": "yes"}', store=store)

    assert (unsaid.exit_code, wrong.exit_code) == (2, 2)
    assert "is not what 'ask_first' brings" in wrong.stderr
    assert done.stdout == f"approved {approval}; resume the run with: toolcrib run resume {run_id}\n"
    assert asyncio.run(resume(store, run_id)) == {"sent": "yes"}


@pytest.mark.requirement("effects.settled", "effects.settled_bound")
def test_a_call_of_a_run_that_has_ended_is_settled_and_the_trace_tells_who_said_what(store: str):
    run_id, position = asyncio.run(fail(store))

    wrong = toolcrib("run", "settle", run_id, position, "--happened", "--output", '{"sent": 7}', store=store)
    own = toolcrib("run", "settle", run_id, position, "--not", "--as", "owner", store=store)
    done = toolcrib("run", "settle", run_id, position, "--not", "--reason", "lost", "--as", "ann", store=store)
    again = toolcrib("run", "settle", run_id, position, "--happened", "--output", '{"sent": ""}', store=store)
    shown = toolcrib("run", "trace", run_id, store=store)

    assert (wrong.exit_code, own.exit_code, done.exit_code, again.exit_code) == (2, 1, 0, 1)
    assert "the call may be made once more" in done.stdout
    assert "was settled by 'ann'" in again.stderr
    assert "ann has said since that it did not take effect (lost)" in " ".join(shown.stdout.split())

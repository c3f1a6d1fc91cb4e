"""MCP servers that are programs: started with little, bounded, and ended with all that they have started."""

import asyncio
import os
import select
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from toolcrib import Crib, DefinitionOptions
from toolcrib.contracts import ErrorCode, Reason, Unavailable

pytestmark = pytest.mark.requirement("mcp_client.program")

PROGRAM = Path(__file__).parent / "program.py"
SECRET = "a-secret-0123456789"


def command(mode: str) -> list[str]:
    """A program that behaves so."""
    return [sys.executable, str(PROGRAM), mode]


@asynccontextmanager
async def crib_for(mode: str) -> AsyncGenerator[Crib]:
    """A crib with the tool of a program."""
    around = {"PATH": os.defpath, "TOKEN": SECRET, "OTHER_SECRET": "never given"}
    line = f"TOKEN= {shlex.join(command(mode))}"
    async with Crib("memory://", environment=around, definitions=DefinitionOptions(mcp_commands=(line,))) as crib:
        await crib.imports.mcp(name="there", command=command(mode), environment={"TOKEN": "${env:TOKEN}"})
        yield crib


def ended(process: int) -> bool:
    """Whether a process has ended, or does so within seconds."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 5.0)[0])
    finally:
        os.close(descriptor)


async def test_a_program_answers_calls_and_ends_with_the_crib():
    async with crib_for("plain") as crib:
        first = await crib.call("look")
        second = await crib.call("look")
        process = int(str(first.output).split()[1])
    assert first.output == second.output, "one program for all calls"
    assert ended(process)


async def test_a_program_gets_few_variables_and_a_secret_that_is_not_shown():
    async with crib_for("environment") as crib:
        envelope = await crib.call("look")
    assert set(envelope.output) - {"LC_CTYPE"} == {"PATH", "TOKEN"}
    assert envelope.output["TOKEN"] == "[secret]"


async def test_what_a_program_has_started_ends_with_it():
    async with crib_for("child") as crib:
        child = int((await crib.call("look")).output)
    assert ended(child)


async def test_lines_that_are_no_messages_and_much_noise_do_no_harm():
    async with crib_for("noise") as crib:
        assert (await crib.call("look")).ok
        assert (await crib.call("look")).ok


@pytest.mark.requirement("mcp_client.broken")
async def test_a_program_that_ends_during_a_call_fails_it_and_is_started_again_for_the_next():
    async with crib_for("crash") as crib:
        envelopes = [await crib.call("look") for _ in range(2)]
    for envelope in envelopes:
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.reason) == (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED)
        assert "about to fail with [secret]" in envelope.error.message
        assert SECRET not in envelope.error.message


@pytest.mark.requirement("mcp_client.bounds")
async def test_an_answer_of_60_mb_is_one_clear_error_with_the_limit():
    async with crib_for("long") as crib:
        started = asyncio.get_running_loop().time()
        envelope = await crib.call("look")
        assert asyncio.get_running_loop().time() - started < 15, "19 s on an idle machine before"
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
        assert "more than 16777216 bytes, the most that is read" in envelope.error.message


@pytest.mark.requirement("mcp_client.bounds")
def test_an_answer_of_60_mb_leaves_no_traceback_when_the_loop_closes():
    script = f"""
import asyncio
from toolcrib import Crib, DefinitionOptions

command = {command("long")!r}

async def main():
    allowed = DefinitionOptions(mcp_commands=({shlex.join(command("long"))!r},))
    async with Crib("memory://", definitions=allowed) as crib:
        await crib.imports.mcp(name="there", command=command)
        print((await crib.call("look")).error.code)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "PROVIDER_ERROR"
    assert done.stderr == ""


@pytest.mark.requirement("mcp_client.failures")
async def test_a_program_that_does_not_answer_in_time_is_a_timeout_and_is_killed():
    async with crib_for("hang") as crib:
        provider = crib.providers.find("default", "there")
        assert provider is not None
        await crib.save_provider(provider.model_copy(update={"timeout_s": 0.3}))
        envelope = await crib.call("look")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT)


async def test_a_program_that_ends_at_once_is_an_error_that_tells_what_it_said():
    async with Crib(
        "memory://", environment={}, definitions=DefinitionOptions(mcp_commands=(shlex.join(command("stillborn")),))
    ) as crib:
        with pytest.raises(Unavailable, match="it cannot start today"):
            await crib.imports.mcp(name="there", command=command("stillborn"))


async def test_a_program_that_is_not_there_is_an_error_that_says_so():
    async with Crib(
        "memory://", environment={}, definitions=DefinitionOptions(mcp_commands=("/nowhere/server",))
    ) as crib:
        with pytest.raises(Unavailable, match="No such file"):
            await crib.imports.mcp(name="there", command=["/nowhere/server"])


@pytest.mark.requirement("mcp_client.commands")
async def test_a_stored_program_that_is_not_listed_any_more_is_not_started():
    async with crib_for("plain") as crib:
        store = crib.store
        async with Crib(store, environment={"TOKEN": SECRET}) as strict:
            envelope = await strict.call("look")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED)

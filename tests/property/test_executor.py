"""Whatever a tool does, there is one envelope, and what must hold for envelopes holds for it."""

import asyncio
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins import Rig, make_tool
from toolcrib.contracts import (
    Attachment,
    CallFinished,
    ErrorCode,
    Json,
    Reason,
    RetryPolicy,
    SecretReference,
    ToolEnvelope,
    ToolError,
    call_id,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome

SECRET = "hunter2-but-longer"
LIMIT = 300
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError(SECRET)


def nested(depth: int, value: Any) -> Any:
    for number in range(depth):
        value = [value] if number % 2 else {"in": value}
    return value


texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from([SECRET, f"Bearer {SECRET}", "\ud800", f"\udfff{SECRET}", "x" * 3_000, SECRET * 50, '"' * 400]),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.sampled_from([2**63, 2**64, -(2**70), math.nan, -math.inf]),
    st.sampled_from([{1, 2}, b"bytes", object(), CIRCLE, (1, 2), datetime(2026, 1, 1, tzinfo=UTC), Decimal("1.1")]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(texts | st.integers(), inner, max_size=4)),
    max_leaves=12,
) | st.builds(nested, st.integers(90, 400), scalars)
objects = st.dictionaries(texts, values, max_size=3)


def picture(tail: str) -> Attachment:
    return Attachment(kind="image", url=f"https://a.b/{tail}")


pictures = st.lists(st.builds(picture, st.sampled_from(["", SECRET])), max_size=2)
outcomes = st.builds(
    Outcome,
    values,
    http_status=st.none() | st.integers(100, 599),
    metadata=objects,
    attachments=pictures.map(tuple),
    cost_usd=st.none() | st.decimals(0, 10, places=2),
    secrets=st.sampled_from([(), ("another-long-secret",)]),
)


def failure(code: ErrorCode, message: str, details: Any, wait: float | None, status: int | None) -> CallFailed:
    # As a runtime might build it from what a foreign system sent: unchecked.
    error = ToolError(code=code, message=message, details=details, retry_after_s=wait)
    return CallFailed(error, http_status=status, metadata={"details": details})


failures = st.builds(
    failure,
    st.sampled_from(ErrorCode),
    texts,
    st.none() | objects | st.fixed_dictionaries({"reason": st.sampled_from(Reason)}),
    st.none() | st.floats(),
    st.none() | st.integers(100, 599),
)


def crash(kind: type[BaseException], text: str) -> BaseException:
    return kind(text)


crashes = st.builds(
    crash,
    st.sampled_from([ValueError, KeyError, TimeoutError, RecursionError, asyncio.CancelledError, SystemExit, Mute]),
    texts,
)


def ends(ending: Outcome | BaseException) -> Callable[[Dispatch], Outcome]:
    def behaviour(dispatch: Dispatch) -> Outcome:
        dispatch.input["token"] = dispatch.auth["key"]
        if isinstance(ending, BaseException):
            raise ending
        return ending

    return behaviour


async def hang(dispatch: Dispatch) -> Outcome:
    return Outcome(await asyncio.Event().wait())


TOOL = make_tool(
    secrets=(SecretReference(name="key", reference="${env:KEY}"),),
    max_output_bytes=LIMIT,
    retry=RetryPolicy(count=1, max_s=1),
    timeout_s=0.001,
)


def check(envelope: ToolEnvelope, arguments: Json, elapsed: float) -> None:
    """All that must hold for every envelope."""
    assert (envelope.status == "success") == (envelope.error is None)
    if envelope.error is not None:
        assert envelope.output is None
        assert envelope.error.code in ErrorCode
        assert len(envelope.error.message) < 2_100
    assert len(orjson.dumps(envelope.output)) <= LIMIT
    assert envelope.truncated == any(attached.url.startswith("blob:") for attached in envelope.attachments)
    assert envelope.call_id == call_id(TOOL.name, TOOL.version, arguments, "t1.c1")
    assert envelope.input == arguments
    assert sum(envelope.timings.model_dump().values()) == pytest.approx(elapsed)
    event = CallFinished(position="t1.c1", envelope=envelope)
    text = event.model_dump_json()
    assert SECRET not in text
    assert "another-long-secret" not in text
    assert orjson.loads(orjson.dumps(event.model_dump(mode="json"))) == orjson.loads(text)
    assert CallFinished.model_validate_json(text).envelope.output == envelope.output


async def one_call(ending: Outcome | BaseException | None, arguments: dict[str, int]) -> None:
    """Run a tool to this end (null: it never ends) and look at what came of it."""
    rig = Rig(TOOL, behaviour=hang if ending is None else ends(ending), secrets={"${env:KEY}": SECRET})
    envelope = await rig.run(arguments=dict(arguments))
    check(envelope, arguments, rig.clock.elapsed)
    if envelope.error is not None and not isinstance(ending, CallFailed):
        assert envelope.error.reason is not None
    assert 1 <= envelope.attempts == len(rig.dispatcher.dispatched) <= 2
    assert len(rig.journal.intents) == rig.budget.tool_calls == 1


@pytest.mark.requirement(
    "executor.one_envelope", "executor.secrets", "executor.timings", "executor.identity", "executor.isolation"
)
@given(
    ending=st.one_of(outcomes, failures, crashes, st.none()),
    arguments=st.dictionaries(st.text("ab"), st.integers(0, 9), max_size=3),
)
@settings(deadline=None)
def test_every_end_of_a_tool_is_one_envelope_that_is_json_and_holds_no_secret(
    ending: Outcome | BaseException | None, arguments: dict[str, int]
):
    asyncio.run(one_call(ending, arguments))


@pytest.mark.requirement("executor.arguments", "executor.one_envelope")
@given(arguments=st.one_of(values, objects))
@settings(deadline=None)
def test_every_input_is_run_or_refused_and_its_envelope_is_json(arguments: Json):
    rig = Rig(make_tool())

    envelope = asyncio.run(rig.run(arguments=[arguments] if arguments is None else arguments))

    assert envelope.ok == bool(rig.dispatcher.dispatched)
    assert envelope.ok or (envelope.error is not None and envelope.error.code is ErrorCode.VALIDATION_ERROR)
    event = CallFinished(position="t1.c1", envelope=envelope)
    assert orjson.loads(orjson.dumps(event.model_dump(mode="json"))) == orjson.loads(event.model_dump_json())


def any_failure(dice: random.Random) -> BaseException:
    kinds: tuple[type[BaseException], ...] = (
        ValueError, KeyError, OSError, ConnectionError, TimeoutError, UnicodeError, MemoryError, RecursionError,
        AssertionError, StopIteration, StopAsyncIteration, SystemExit, asyncio.CancelledError, Mute,
        asyncio.InvalidStateError, BlockingIOError, ImportError, NotImplementedError, ArithmeticError,
    )  # fmt: skip
    message = "".join(chr(dice.choice([65, 0xE9, 0xD800, 0, 0x1F600])) for _ in range(dice.randrange(8)))
    if dice.random() < 0.5:
        details = dice.choice(
            [None, {}, {"reason": "odd"}, {"reason": Reason.BAD_RESPONSE.value}, {"x": {1}}, {"n": math.nan}]
        )
        status = dice.choice([None, 200, 301, 400, 401, 404, 408, 429, 500, 503, 599])
        return failure(dice.choice(list(ErrorCode)), message, details, dice.choice([None, 0.0, 9e9, math.nan]), status)
    return dice.choice(kinds)(*([message] * dice.randrange(3)))


async def fuzz(number: int) -> None:
    dice = random.Random(number)
    for _ in range(number):
        await one_call(any_failure(dice), {"n": dice.randrange(9)})


@pytest.mark.requirement("executor.failures")
async def test_of_three_hundred_failures_none_is_unclassified():
    await fuzz(300)


@pytest.mark.soak
@pytest.mark.requirement("executor.failures")
async def test_of_ten_thousand_failures_none_is_unclassified():
    await fuzz(10_000)

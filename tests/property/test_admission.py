"""A run is admitted by what is known of its tool as it would be by all stages of a call, whoever asks with whatever."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins import AT, DictSecrets, FunctionDispatcher, ManualClock, make_definition
from toolcrib.contracts import (
    AgenticImplementation,
    InvalidInput,
    LLMConfig,
    Principal,
    RunRequest,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.executor import Executor, SlidingWindow
from toolcrib.core.registry import Registry
from toolcrib.crib.container import refusal_of_run, request_of
from toolcrib.infrastructure.store import MemoryStore

_SCHEMA = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "maxLength": 5},
        "depth": {"type": "integer", "default": 1},
        "more": {"type": "object", "properties": {"deep": {"type": "boolean", "default": True}}},
    },
    "required": ["task"],
    "additionalProperties": False,
}
_GRANTS = [(), ("ai://*",), ("ai://tools/*/plain/execute",), ("ai://tools/*/filled/execute", "ai://agents/*")]

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
typical: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"task": st.text(max_size=6)}, optional={"depth": values, "more": values}
)
odd: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["task", "depth", "more", "other"]), values, max_size=3
)
principals = st.builds(
    Principal,
    id=st.sampled_from(["ann", "bob"]),
    kind=st.sampled_from(["user", "service"]),
    realm=st.sampled_from(["acme", "other"]),
    grants=st.sampled_from(_GRANTS),
)
requests = st.lists(
    st.tuples(st.sampled_from(["plain", "filled"]), typical | odd, principals, st.booleans(), st.booleans()),
    max_size=12,
)


def agentic(name: str, schema: dict[str, Any]) -> ToolDefinition:
    asks = AgenticImplementation(mode="agentic", llm=LLMConfig(model="m"), system_prompt="{{user_task}}")
    return make_definition(name, implementation=asks).model_copy(update={"input_schema": schema})


async def catalogue() -> tuple[Registry, Executor]:
    store = MemoryStore()
    registry = Registry(store.definitions)
    without: dict[str, Any] = {"type": "object", "properties": {"task": {"type": "string"}}}
    for definition in (agentic("plain", without), agentic("filled", _SCHEMA)):
        await registry.save(definition, realm="acme", made_by="ann", at=AT)
    executor = Executor(
        tools=registry,
        dispatcher=FunctionDispatcher(),
        secrets=DictSecrets(),
        results=store.cache,
        blob_sink=store.blobs,
        rates=SlidingWindow(),
        clock=ManualClock(),
    )
    return registry, executor


def asked(
    tool: ToolRevision, given: dict[str, Any], who: Principal, registry: Registry, *, as_call: bool
) -> RunRequest | str:
    try:
        return request_of(tool, given, who, registry, as_call=as_call)
    except InvalidInput as refusal:
        return str(refusal)


@pytest.mark.requirement("crib.admission")
@given(requests)
async def test_what_is_known_of_a_tool_changes_neither_a_request_nor_the_answer_to_it(
    wanted: list[tuple[str, dict[str, Any], Principal, bool, bool]],
):
    registry, executor = await catalogue()
    for name, given_arguments, who, as_call, blocks in wanted:
        tool = registry.require("acme", name)
        fresh, _ = await catalogue()
        known = asked(tool, given_arguments, who, registry, as_call=as_call)
        anew = asked(fresh.require("acme", name), given_arguments, who, fresh, as_call=as_call)
        if isinstance(known, str) or isinstance(anew, str):
            assert known == anew
            continue
        assert repr(known) == repr(anew)  # numbers that are none are equal to none
        told = refusal_of_run(executor, tool, known, registry=registry)
        assert told == refusal_of_run(executor, tool, known)
        if blocks:
            await registry.set_status("acme", name, "blocked")
            blocked = registry.require("acme", name)
            refusal = refusal_of_run(executor, blocked, known, registry=registry)
            assert refusal == refusal_of_run(executor, blocked, known)
            assert as_call or refusal is not None
            await registry.set_status("acme", name, "active")

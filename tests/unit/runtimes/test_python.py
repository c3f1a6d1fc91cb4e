"""Python functions as the executor dispatches them."""

from typing import Annotated, Any, cast

import pytest
from aiohttp import web
from pydantic import AfterValidator, BaseModel, ValidationError

from tests.twins import make_context, make_tool
from tests.unit.net.servers import serving
from toolcrib.contracts import ErrorCode, Limits, Reason, ToolRevision
from toolcrib.core.executor import CallFailed, Dispatch
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.kinds.python.context import ToolContext
from toolcrib.kinds.python.functions import FunctionTool, tool
from toolcrib.kinds.python.runtime import PythonRuntime


def revision(function: FunctionTool[..., Any]) -> ToolRevision:
    """The function as a crib has stored it."""
    definition = function.definition
    return make_tool(definition.name).model_copy(
        update={"definition": definition, "content_hash": definition.content_hash()}
    )


def dispatch(stored: ToolRevision, limits: Limits | None = None, **arguments: Any) -> Dispatch:
    """One execution with these arguments."""
    return Dispatch(
        tool=stored,
        input=arguments,
        auth={"token": "t"},
        idempotency_key="run_1:t1.c1",
        position="t1.c1",
        attempt=2,
        context=make_context(limits=limits),
    )


async def run(function: FunctionTool[..., Any], **arguments: Any) -> Any:
    """What the runtime brings back."""
    async with HttpSession() as session:
        stored, runtime = revision(function), PythonRuntime(session)
        runtime.bind(stored.content_hash, function)
        return (await runtime.run(dispatch(stored, **arguments))).output


@pytest.mark.requirement("runtimes.python")
async def test_a_function_gets_its_arguments_and_the_facts_of_its_call():
    @tool
    async def echo(n: int, context: ToolContext) -> list[Any]:
        return [n, context.run_id, context.position, context.realm, context.principal, context.attempt, *context.auth]

    @tool
    def key(context: ToolContext) -> str:
        return context.idempotency_key

    assert await run(echo, n=3) == [3, "run_1", "t1.c1", "default", "owner", 2, "token"]
    assert await run(key) == "run_1:t1.c1"


@pytest.mark.requirement("runtimes.python_types")
@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"n": 1, "x": 1.5, "text": "a", "on": True, "some": None}, {"n": 1, "x": 1.5, "some": None}),
        ({"n": 1.0, "x": 1, "text": "a"}, {"n": 1, "x": 1.0, "some": 7}),
        ({"n": 1, "x": 1.5, "some": 2, "context": 3}, "context"),
        ({"n": 1, "some": 2.5, "x": 2}, "some"),
        ({"n": 1, "some": 2}, "x"),
    ],
)
async def test_arguments_have_the_types_of_their_hints(given: dict[str, Any], seen: dict[str, Any] | str):
    """Single values that are of them already are passed as they are; all others pydantic converts, or refuses."""

    @tool
    async def types(
        n: int, x: float, context: ToolContext, *, text: str = "", on: bool = False, some: int | None = 7
    ) -> str:
        assert (type(text), type(on)) == (str, bool)
        return repr({"n": n, "x": x, "some": some})

    if isinstance(seen, str):
        with pytest.raises(CallFailed, match=seen):
            await run(types, **given)
    else:
        assert await run(types, **given) == repr(seen)


@pytest.mark.requirement("runtimes.python_types")
async def test_single_results_are_json_as_their_hints_have_them():
    @tool
    async def number(as_text: bool) -> float:
        return cast("float", "3") if as_text else 3

    @tool
    async def found(text: str, hints: list[int]) -> int:
        return len(text) + sum(hints)

    assert repr(await run(number, as_text=False)) == "3.0"
    assert await run(number, as_text=True) == "3"
    assert await run(found, text="abc", hints=[1, 2]) == 6


@pytest.mark.requirement("runtimes.python_requests")
async def test_what_a_function_asks_for_is_counted_and_the_last_allowed_request_is_the_last():
    @tool
    async def fetch(context: ToolContext) -> list[int]:
        return [(await context.http.request("GET", url)).status for _ in range(3)]

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response()

    asked: list[str] = []
    async with serving(answer) as port, HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
        url = f"http://127.0.0.1:{port}/"
        stored, runtime = revision(fetch), PythonRuntime(session)
        runtime.bind(stored.content_hash, cast("FunctionTool[..., Any]", fetch))
        with pytest.raises(CallFailed, match="limit max_requests is 2 and this would make 3") as refusal:
            await runtime.run(dispatch(stored, limits=Limits(max_requests=2)))

    assert (refusal.value.error.code, refusal.value.error.reason) == (
        ErrorCode.POLICY_DENIED,
        Reason.MAX_REQUESTS_EXCEEDED,
    )
    assert asked == ["/", "/"]


@pytest.mark.requirement("runtimes.python_missing")
async def test_a_function_that_this_process_does_not_have_fails_with_what_to_do():
    with pytest.raises(CallFailed) as failure:
        await PythonRuntime(HttpSession()).run(dispatch(make_tool("gone")))

    assert failure.value.error.reason is Reason.RUNTIME_MISSING
    assert "'gone@1.0.0'" in failure.value.error.message
    assert "call crib.add(...) with it" in failure.value.error.message


@pytest.mark.requirement("runtimes.python_failure")
async def test_arguments_that_only_the_types_refuse_are_an_invalid_input_and_the_function_does_not_run():
    ran: list[int] = []

    def even(n: int) -> int:
        if n % 2:
            raise ValueError("must be even")
        return n

    @tool
    async def halve(n: Annotated[int, AfterValidator(even)]) -> int:
        ran.append(n)
        return n // 2

    with pytest.raises(CallFailed) as refusal:
        await run(halve, n=3)

    error = refusal.value.error
    assert (error.code, error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH)
    assert error.message == (
        "the arguments of 'halve' are not valid: n: Value error, must be even. Correct them and call again"
    )
    assert ran == []


@pytest.mark.requirement("runtimes.python_failure")
async def test_a_validation_error_from_inside_a_function_is_its_own_failure():
    class Row(BaseModel):
        n: int

    @tool
    async def parse() -> int:
        return Row.model_validate({"n": "x"}).n

    with pytest.raises(ValidationError):
        await run(parse)


@pytest.mark.requirement("runtimes.python_http")
async def test_what_a_function_fetches_is_held_to_the_cribs_egress_policy():
    @tool
    async def fetch(url: str, context: ToolContext) -> int:
        return (await context.http.request("GET", url)).status

    with pytest.raises(CallFailed) as refusal:
        await run(fetch, url="http://169.254.169.254/latest/meta-data")

    error = refusal.value.error
    assert (error.code, error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)
    assert error.message.startswith("tool 'fetch': egress denied: ")

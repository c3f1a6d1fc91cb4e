"""From a tool's kind to its runtime."""

import pytest

from tests.twins import make_context, make_tool
from toolcrib.contracts import ErrorCode, ProviderDefinition, Reason, RetryPolicy
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers.request_errors import request_limit_s
from toolcrib.kinds.dispatch import RuntimeDispatcher
from toolcrib.kinds.http.shape import HttpImplementation


class Answering:
    """A runtime that always says the same."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once."""
        return Outcome(f"{self.answer} {dispatch.tool.name}")


def dispatch(kind: str) -> Dispatch:
    """An execution of a tool of this kind."""
    http = HttpImplementation(method="GET", url="https://example.com")
    tool = make_tool(kind, implementation=http) if kind == "http" else make_tool(kind)
    return Dispatch(tool=tool, input={}, auth={}, idempotency_key="k", position="p", attempt=1, context=make_context())


@pytest.mark.requirement("runtimes.dispatcher")
async def test_a_tool_runs_in_the_runtime_of_its_kind():
    dispatcher = RuntimeDispatcher({"python": Answering("ran"), "http": Answering("sent")})

    assert (await dispatcher.dispatch(dispatch("python"))).output == "ran python"
    assert (await dispatcher.dispatch(dispatch("http"))).output == "sent http"


@pytest.mark.requirement("runtimes.dispatcher")
async def test_a_kind_without_a_runtime_is_named_with_those_that_there_are():
    dispatcher = RuntimeDispatcher({"python": Answering("ran")})

    with pytest.raises(CallFailed, match="no runtime for tools of kind 'http'; it has: python") as failure:
        await dispatcher.dispatch(dispatch("http"))

    assert failure.value.error.reason is Reason.RUNTIME_MISSING


class Failing:
    """A runtime whose calls all fail."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once."""
        raise CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, f"{dispatch.tool.name} is away"))


def reaching(provider: str | None) -> Dispatch:
    """An execution of an HTTP tool of this provider."""
    http = HttpImplementation(method="GET", url="https://crm.example/deals", provider=provider)
    tool = make_tool("deals", implementation=http)
    return Dispatch(tool=tool, input={}, auth={}, idempotency_key="k", position="p", attempt=1, context=make_context())


@pytest.mark.requirement("runtimes.provider_defaults")
@pytest.mark.parametrize(("provider", "count"), [("crm", 2), ("gone", None), (None, None)])
async def test_a_failed_call_carries_the_retry_policy_of_its_tools_provider(provider: str | None, count: int | None):
    crm = ProviderDefinition(name="crm", base_url="https://crm.example", retry=RetryPolicy(count=2))
    dispatcher = RuntimeDispatcher(
        {"http": Failing()}, lambda realm, name: {("default", "crm"): crm}.get((realm, name))
    )

    with pytest.raises(CallFailed) as failure:
        await dispatcher.dispatch(reaching(provider))

    assert (failure.value.retry.count if failure.value.retry else None) == count


@pytest.mark.requirement("runtimes.provider_defaults")
@pytest.mark.parametrize(("limit_s", "request_s"), [(None, 60.0), (5.0, 5.0), (90.0, 60.0)])
def test_one_request_has_the_providers_time_within_that_of_the_whole_call(limit_s: float | None, request_s: float):
    provider = ProviderDefinition(name="crm", base_url="https://crm.example", timeout_s=limit_s)

    assert request_limit_s(make_tool().definition, provider) == request_s
    assert request_limit_s(make_tool().definition, None) == 60.0

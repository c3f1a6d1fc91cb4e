"""From a tool's kind to its runtime."""

import pytest

from tests.twins import make_context, make_tool
from toolcrib.contracts import HttpImplementation, Reason
from toolcrib.executor import CallFailed, Dispatch, Outcome
from toolcrib.runtimes import RuntimeDispatcher


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

"""A crib for tests, and what people and time do to its runs: approve, reject, signal, advance.

Example:
    from toolcrib.testing import approve

    waiting = await crib.invoke("send_offer", {"deal": "d1"})
    sent = await approve(crib, waiting)
    print(sent.output)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from toolcrib.contracts import AgentResponse, Approval, InvalidInput, JsonObject, LLMConfig
from toolcrib.contracts.workflows import WorkflowInstance
from toolcrib.core.executor import Clock
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib, Crib, DefinitionOptions
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.llm import LanguageModel, Request, ScriptedModel
from toolcrib.testing.frozen_clock import FrozenClock

AnyRun: TypeAlias = Result | AgentResponse | WorkflowInstance | str
"""A run as a tool, an agent or a workflow returns it, or its id."""
RunT = TypeVar("RunT", bound=Result[Any] | AgentResponse | WorkflowInstance)


def new_crib(
    *,
    store: str = "memory://",
    models: Mapping[str, LanguageModel] | None = None,
    clock: Clock | None = None,
    environment: Mapping[str, str] | None = None,
    definitions: DefinitionOptions | None = None,
) -> Crib:
    """A crib for a test: in memory, without network, with a frozen clock and an empty environment.

    Requests of tools fail with `egress denied`, and a model without a script with a message that says how to add one.
    What Python functions open themselves is not stopped: only requests that go through Toolcrib are.

    Args:
        store: Another store, such as `sqlite:///test.db`.
        models: Models by reference.
        clock: Another clock.
        environment: The variables and keys that it finds.
        definitions: As of a `Crib`.

    Example:
        from toolcrib.testing import new_crib

        async with new_crib() as crib:
            crib.add(search_deals)
            print((await crib.call("search_deals", company="Acme")).output)
    """
    made = Crib(
        store,
        models=models,
        egress=EgressPolicy(hosts=()),
        environment=environment or {},
        clock=clock or FrozenClock(),
        definitions=definitions,
    )
    made.models.substitute(partial(_scripted_only, models or {}))
    return made


def close(crib: Crib, clock: FrozenClock) -> None:
    """Close a crib after its test: in the event loop that still waits for its clock, or in a new one."""
    loop = clock.loop
    if loop is None:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(crib.close())
    else:
        loop.run_until_complete(crib.close())


async def advance(
    crib: Crib, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> Sequence[Result]:
    """Let time pass, and resume every run whose time has come: timers of workflows, approvals that expire.

    Args:
        crib: A crib with a `FrozenClock`.
        days: Days.
        hours: Hours.
        minutes: Minutes.
        seconds: Seconds.

    Returns:
        The runs that were resumed, as they stand now.

    Raises:
        InvalidInput: The crib has another clock.

    Example:
        from toolcrib.testing import advance, new_crib

        async with new_crib() as crib:
            remind = crib.workflow("remind", steps=[{"name": "pause", "wait": {"seconds": 3600}}])
            waiting = await remind()
            [done] = await advance(crib, hours=1)
            print(waiting.status, done.status)
    """
    clock = crib.clock
    if not isinstance(clock, FrozenClock):
        msg = f"the crib has a {type(clock).__name__}, whose time cannot be moved; make it with clock=FrozenClock()"
        raise InvalidInput(msg)
    clock.advance(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return await crib.recover()


async def approve(crib: Crib, run: RunT, tool: str | None = None, *, edited_input: JsonObject | None = None) -> RunT:
    """Approve the calls of a run that wait for a person, and resume it.

    Args:
        crib: The crib.
        run: The run, also one whose agents wait inside it.
        tool: Only calls of this tool.
        edited_input: Arguments to run with instead.

    Returns:
        The run as it stands then: it may wait for the next approval.

    Raises:
        AssertionError: No such call waits; the message says what the run waits for.

    Example:
        from toolcrib.testing import approve

        waiting = await crib.invoke("send_offer", {"deal": "d1"})
        print((await approve(crib, waiting, "send_offer")).output)
    """
    for waiting in await _waiting(crib, run, tool):
        await crib.approvals.decide(waiting.approval_id, approve=True, edited_input=edited_input)
    return await _resumed(crib, run)


async def reject(crib: Crib, run: RunT, tool: str | None = None, *, reason: str | None = None) -> RunT:
    """Reject the calls of a run that wait for a person, and resume it.

    Args:
        crib: The crib.
        run: The run.
        tool: Only calls of this tool.
        reason: What the agent is told.

    Returns:
        The run as it stands then.

    Raises:
        AssertionError: No such call waits; the message says what the run waits for.

    Example:
        from toolcrib.testing import reject

        waiting = await crib.invoke("send_offer", {"deal": "d1"})
        print((await reject(crib, waiting, reason="Not this year")).error)
    """
    for waiting in await _waiting(crib, run, tool):
        await crib.approvals.decide(waiting.approval_id, approve=False, reason=reason)
    return await _resumed(crib, run)


async def send_signal(crib: Crib, run: RunT, name: str, payload: JsonObject | None = None) -> RunT:
    """Send a workflow the signal that a step waits for, and resume it.

    Args:
        crib: The crib.
        run: The run of the workflow.
        name: The name of the signal.
        payload: The output of the step.

    Returns:
        The run as it stands then.

    Raises:
        InvalidInput: No step of the workflow waits for such a signal.
        AssertionError: It was sent before.

    Example:
        from toolcrib.testing import send_signal

        order = crib.workflow("order", steps=[{"name": "payment", "wait": {"signal": "paid"}}])
        done = await send_signal(crib, await order(), "paid", {"amount": 12})
        print(done.status)
    """
    if not await crib.instances.signal(run.run_id, name, payload):
        msg = f"signal {name!r} was sent to run {run.run_id} before; the first one counts"
        raise AssertionError(msg)
    return await _resumed(crib, run)


def _scripted_only(
    scripted: Mapping[str, LanguageModel], llm: LLMConfig, opened: Callable[[], LanguageModel]
) -> LanguageModel:
    if llm.model in scripted:
        return opened()

    def refuse(_request: Request) -> str:
        msg = (
            f"model {llm.model!r} has no script, and this crib has no network; script it: "
            "override_models(crib, ScriptedModel([...])), or scripted(...) in pytest"
        )
        raise InvalidInput(msg)

    return ScriptedModel(refuse, name="none")


async def _waiting(
    crib: ActingCrib, run: Result | AgentResponse | WorkflowInstance, tool: str | None
) -> Sequence[Approval]:
    page = await crib.approvals.page(run_id=run.run_id, limit=200)
    found = [each for each in page.items if tool is None or each.tool == tool]
    if not found:
        others = ", ".join(sorted({each.tool for each in page.items})) or "no call"
        wanted = "no call" if tool is None else f"no call of {tool!r}"
        msg = f"{wanted} waits for a person in run {run.run_id}, which is {run.status}; {others} waits"
        raise AssertionError(msg)
    return found


async def _resumed(crib: Crib, run: RunT) -> RunT:
    resumed = await crib.resume(run.run_id)
    if isinstance(run, AgentResponse):
        return cast("RunT", await crib.executions.respond(run.run_id))
    if isinstance(run, WorkflowInstance):
        return cast("RunT", await crib.instances.get(run.run_id))
    return cast("RunT", resumed if run.reader is None else resumed.read_as(run.reader))

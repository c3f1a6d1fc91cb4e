"""Routes over forks of runs: one is made, and held against the run that it was made of."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Response
from pydantic import ConfigDict, Field

from toolcrib.contracts import ENDED, AgentDefinition, Contract, JsonObject, LLMConfig, Run
from toolcrib.contracts.runs.comparisons import RunDiff
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.desk import Author
from toolcrib.interfaces.server.http.parsing import JsonRoute

router = APIRouter(prefix="/executions", route_class=JsonRoute, tags=["executions"])

_GOES_ON: Final[dict[int | str, dict[str, Any]]] = {202: {"model": Run}}


class ForkBody(Contract):
    """Where a run is cut, and what is different from there on."""

    model_config = ConfigDict(defer_build=False)

    at: int | str | None = None
    """Number of the last event that is known, `step:NAME` or `turn:N`; null for the beginning."""
    changes: JsonObject = Field(default_factory=dict)
    """By name: `model`, `prompt`, `tool:NAME`, `policy`, `input.FIELD`, `temperature`…"""
    allow_writes: bool = False
    """Make calls with side effects that are not in the recording; else they are skipped."""
    anew: bool = False
    """Take nothing from the recording that came after the event."""
    wait: bool = True
    """False: answer at once; the run goes on by itself."""


@router.post("/{run_id}/fork", responses=_GOES_ON)
async def fork_run(
    *,
    run_id: str,
    crib: House,
    caller: Caller,
    author: Author,
    response: Response,
    body: Annotated[ForkBody, Body(default_factory=ForkBody)],
) -> Run:
    """Begin a run with what another one knew at an event, and go on from there; the header `Location` names it.

    Needs to read the run and to execute its tool, and to write that if its definition is changed.
    """
    model = body.changes.get("model")
    if isinstance(model, str) and model:
        author.check(AgentDefinition(name="fork", llm=LLMConfig(model=model)).tool())
    fork = await crib.fork(
        run_id,
        at=body.at,
        changes=body.changes,
        allow_writes=body.allow_writes,
        anew=body.anew,
        wait=body.wait,
        principal=caller,
    )
    response.headers["Location"] = f"/api/v1/executions/{fork.run_id}"
    if fork.status not in ENDED:
        response.status_code = 202
    return fork


@router.get("/{run_id}/diff/{other}")
async def diff_runs(run_id: str, other: str, crib: House, caller: Caller) -> RunDiff:
    """How two runs differ: in their ends and costs, in what they called, were answered and were allowed."""
    return await crib.compare(run_id, other, principal=caller)

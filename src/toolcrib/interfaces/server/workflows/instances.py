"""Routes of instances of workflows: start, read, stream, resume, rerun, signal and cancel them."""

from typing import Annotated, Any, Final

from fastapi import Body, Query, Response
from fastapi.responses import StreamingResponse

from toolcrib.contracts import ENDED, Conflict, RunStatus
from toolcrib.contracts.workflows import InstancePage, WorkflowInstance
from toolcrib.core.runs import BEGINNING
from toolcrib.interfaces.server.agents.executions import LastEventId
from toolcrib.interfaces.server.http.caller_rights import Caller, CribDep
from toolcrib.interfaces.server.http.document import RUN_STREAM
from toolcrib.interfaces.server.http.requests import Routes
from toolcrib.interfaces.server.http.streaming import start_stream
from toolcrib.interfaces.server.queries import After, Filter, Limit, Sort, add_queries
from toolcrib.interfaces.server.views.run_views import CancelBody
from toolcrib.interfaces.server.views.workflow_views import RerunBody, ResumeBody, SignalBody, StartBody, ToldSignal
from toolcrib.interfaces.server.workflows.workflows import find_workflow
from toolcrib.workflows.run.instances import summary_of

runs = Routes(prefix="/ai/workflows", tags=("workflows",))
router = Routes(prefix="/ai/instances", tags=("workflows",))

_GOES_ON: Final[dict[int | str, dict[str, Any]]] = {202: {"model": WorkflowInstance}}


@runs.post("/{name}/run", responses=_GOES_ON)
async def run_workflow(
    name: str,
    crib: CribDep,
    caller: Caller,
    response: Response,
    body: Annotated[StartBody, Body(default_factory=StartBody)],
) -> WorkflowInstance:
    """Run a workflow, `name` or `name@range`; responds when it has ended or waits, or at once with `wait: false`."""
    await find_workflow(crib, caller, name)
    return _standing(await crib.instances.start(name, body.input, wait=body.wait), response)


@runs.post("/{name}/dry-run", responses=_GOES_ON)
async def dry_run_workflow(
    name: str,
    crib: CribDep,
    caller: Caller,
    response: Response,
    body: Annotated[StartBody, Body(default_factory=StartBody)],
) -> WorkflowInstance:
    """The same as a dry run: calls that would write are skipped, and listed with their arguments."""
    await find_workflow(crib, caller, name)
    started = await crib.instances.start(name, body.input, dry_run=True, wait=body.wait)
    return _standing(started, response)


add_queries(router, "instances", InstancePage, summary_of)


@router.get("")
async def list_instances(
    *,
    crib: CribDep,
    workflow: str | None = None,
    status: RunStatus | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    before: Annotated[str | None, Query(description="The same as `after`.")] = None,
    limit: Limit = 50,
) -> InstancePage:
    """Instances in short, newest first, those that the caller may see; `workflow` is a name without version."""
    return await crib.instances.page(
        workflow=workflow, status=status, filter=filter, sort=sort, before=after or before, limit=limit
    )


@router.get("/{run_id}")
async def get_instance(
    *,
    run_id: str,
    crib: CribDep,
    outputs: Annotated[bool, Query(description="With what the steps have put out, as large as it is.")] = True,
) -> WorkflowInstance:
    """An instance, step by step."""
    return await crib.instances.get(run_id, outputs=outputs)


@router.get("/{run_id}/stream", response_class=StreamingResponse, responses=RUN_STREAM)
async def stream_instance(
    run_id: str,
    crib: CribDep,
    after: Annotated[str, Query(max_length=1000, description="Id of the last message that was received.")] = BEGINNING,
    last_event_id: LastEventId = None,
) -> StreamingResponse:
    """Calls and steps as server-sent events, until the instance has ended or waits; `Last-Event-ID` re-attaches."""
    await crib.instances.get(run_id, outputs=False)
    return await start_stream(crib, run_id, after if last_event_id is None else last_event_id)


@router.post("/{run_id}/resume", responses=_GOES_ON)
async def resume_instance(
    run_id: str,
    crib: CribDep,
    response: Response,
    body: Annotated[ResumeBody, Body(default_factory=ResumeBody)],
) -> WorkflowInstance:
    """Resume an instance. One that failed or was cancelled is continued by a new run of the workflow as it is now.

    Calls that succeeded are not repeated. The response is the new instance; the header `Location` names it.
    """
    resumed = await crib.instances.resume(run_id, repeat_unknown=body.repeat_unknown, wait=body.wait)
    return _standing(resumed, response)


@router.post("/{run_id}/rerun", responses=_GOES_ON)
async def rerun_instance(run_id: str, body: RerunBody, crib: CribDep, response: Response) -> WorkflowInstance:
    """Run a step and all that follow it again, in a new instance, with the earlier outputs of the other steps."""
    return _standing(await crib.instances.rerun(run_id, body.step, wait=body.wait), response)


@router.post("/{run_id}/signal", status_code=202)
async def signal_instance(run_id: str, body: SignalBody, crib: CribDep) -> ToldSignal:
    """Send an instance the signal that a step waits for; the instance then resumes. The first one counts.

    A signal never is an approval: those are decided in the inbox.
    """
    if not await crib.instances.signal(run_id, body.name, body.payload):
        msg = f"instance {run_id} was told {body.name!r} already; the first one counts"
        raise Conflict(msg)
    return ToldSignal(run_id=run_id, name=body.name)


@router.post("/{run_id}/cancel", status_code=202)
async def cancel_instance(
    run_id: str, crib: CribDep, body: Annotated[CancelBody, Body(default_factory=CancelBody)]
) -> WorkflowInstance:
    """End an instance and what is nested in it, whatever it does or waits for. It can be resumed."""
    return await crib.instances.cancel(run_id, reason=body.reason)


def _standing(instance: WorkflowInstance, response: Response) -> WorkflowInstance:
    """200 if it has ended, else 202, and where to look at it again."""
    response.headers["Location"] = f"/api/v1/ai/instances/{instance.run_id}"
    if instance.status not in ENDED:
        response.status_code = 202
    return instance

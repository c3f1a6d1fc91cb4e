"""What a replay has found, of a run and of those nested in it."""

from toolcrib.contracts import ChildStarted, Divergence, ModelFailed, ModelFinished, Replay, RunFinished, RunSuspended
from toolcrib.core.engines.replay.stage import Stage
from toolcrib.core.runs import calls_of


def replay_of(stage: Stage, run_id: str) -> Replay:
    """What the replay of a run has found, once it is over."""
    run, events = stage.parts[run_id].recorded.run, stage.parts[run_id].recorded.events
    made = stage.events(run_id)
    children = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    nested = [replay_of(stage, child_id) for child_id in children if child_id in stage.parts]
    divergence = _of(stage, run_id) or next((one.divergence for one in nested if one.divergence), None)
    made_digest, recorded_digest = stage.digests(family(stage, run_id))
    last = events[-1].event
    end = last if isinstance(last, RunFinished) else None
    return Replay(
        run_id=run_id,
        tool=run.request.tool,
        same=divergence is None and made_digest == recorded_digest,
        divergence=divergence,
        status=last.status if isinstance(last, RunFinished | RunSuspended) else "running",
        stop_reason=None if end is None else end.stop_reason,
        output=None if end is None else end.output,
        envelopes=tuple(envelope for envelope in calls_of(made) if ".reconcile" not in envelope.position),
        model_calls=len({one.event.position for one in made if isinstance(one.event, ModelFinished | ModelFailed)}),
        events=len(made),
        digest=made_digest,
        recorded_digest=recorded_digest,
        nested=tuple(nested),
    )


def family(stage: Stage, run_id: str) -> list[str]:
    """The ids of a run and of all that are nested in it."""
    events = stage.parts[run_id].recorded.events
    children = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    return [run_id, *(one for child in children if child in stage.parts for one in family(stage, child))]


def _of(stage: Stage, run_id: str) -> Divergence | None:
    found = stage.score.divergence
    return found if found is not None and found.run_id == run_id else None

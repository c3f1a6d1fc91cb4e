"""Replays of recorded runs: what a run was asked and answered is read, and its program is executed on that alone."""

from toolcrib.agents import Models
from toolcrib.contracts import ChildStarted, LLMConfig, ModelStarted, Replay
from toolcrib.crib.parts import Parts
from toolcrib.engines import end_of, limits_of
from toolcrib.llm import LanguageModel, ScriptedModel
from toolcrib.runs import Program, Recording, confirmed, replay


async def replay_run(parts: Parts, run_id: str) -> Replay:
    """Execute the program of a run that has ended, and those of its nested runs, against their journals.

    Raises:
        NotFound: There is no such run, or a text of it is gone.
        Conflict: It has not ended.
    """

    def program(recording: Recording) -> Program:
        return confirmed(parts.programs(_silent(recording))[recording.run.request.kind])

    recording = await _recording(parts, run_id)
    store = parts.outside.store
    return await replay(recording, program, tools=parts.registry, blobs=store.blobs, past=store.journal, failed=end_of)


async def _recording(parts: Parts, run_id: str) -> Recording:
    journal = parts.outside.store.journal
    run, events = await journal.run(run_id), await journal.events(run_id)
    request = run.request
    tool = await parts.registry.pinned(run.realm, request.content_hash)
    limits = limits_of(tool, request.kind, request.timeout_s)
    children = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    return Recording(
        run,
        events,
        tool,
        limits if request.allowance is None else request.allowance.bounding(limits),
        {child: await _recording(parts, child) for child in children},
    )


def _silent(recording: Recording) -> Models:
    """Opens models that have the recorded one's name, and nothing to say."""
    names = {entry.event.model for entry in recording.events if isinstance(entry.event, ModelStarted)}

    def model(llm: LLMConfig) -> LanguageModel:
        silent = ScriptedModel(())
        silent.name = next(iter(names)) if len(names) == 1 else llm.model
        return silent

    return model

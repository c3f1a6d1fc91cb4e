"""Replays of recorded runs: what was recorded is read, and the code of today is run on that alone."""

from collections.abc import Mapping
from datetime import datetime

from toolcrib.contracts import DELEGATES, InvalidSettings, LLMConfig, Replay, RunKind
from toolcrib.core.engines.replay import (
    Furniture,
    RecordedFamily,
    ReplayEngine,
    ReplayModels,
    ReplaySandbox,
    replay_of,
)
from toolcrib.core.runs import Past, Program, confirmed
from toolcrib.crib.container.container import Parts
from toolcrib.kinds.runtimes_part import DelegateRuntime, RuntimeDispatcher
from toolcrib.llm import Cost, Usage


async def replay_recording(parts: Parts, recording: RecordedFamily, run_id: str, *, past: Past) -> Replay:
    """Replay a recording with the code and the definitions of a crib.

    Args:
        parts: Of the crib.
        recording: The family of runs.
        run_id: The one of them to tell about.
        past: Reads the other runs that it has read.
    """

    def programs(models: ReplayModels, sandbox: ReplaySandbox) -> Mapping[RunKind, Program]:
        return {kind: confirmed(program) for kind, program in parts.programs(models.model, sandbox).items()}

    def price(llm: LLMConfig, usage: Usage, at: datetime) -> Cost:
        try:
            return parts.models.model(llm).cost(usage, at)
        except InvalidSettings as problem:
            return Cost(None, f"unknown: {problem}")

    engine = ReplayEngine(
        recording,
        Furniture(
            parts.registry,
            programs,
            RuntimeDispatcher(dict.fromkeys(DELEGATES, DelegateRuntime())),
            parts.accounts,
            parts.executor.guardrails,
            parts.outside.store.blobs,
            past,
            price,
        ),
    )
    await engine.replay()
    return replay_of(engine.stage, run_id)

"""What a task is, and what came of one run of it; plain data that a file of lines keeps."""

from dataclasses import asdict, dataclass, field
from typing import Any, cast

from toolcrib import Result
from toolcrib.contracts import ModelFinished


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a system; see the files of tasks for the meaning of the fields."""

    system: str
    id: str
    kind: str
    task: str
    held_out: bool = False
    where: str = ""
    count: str = ""
    set: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the system's own data says."""

    success: bool
    wrong_writes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run."""

    task: str
    kind: str
    held_out: bool
    seed: int
    success: bool
    wrong_writes: int
    problem: str
    status: str
    seconds: float
    model_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    warnings: list[str]
    output: Any

    @classmethod
    def of(cls, task: Task, seed: int, result: Result, verdict: Verdict) -> "Outcome":
        """The outcome of a run that was judged. A task that cannot be done must be answered with a question or fail."""
        answers = [entry.event for entry in result.events if isinstance(entry.event, ModelFinished)]
        asked = "question" in _object(result.summary.output_or_partial)
        refused = task.kind == "ask" and not asked and result.summary.status == "completed" and not _nothing(result)
        return cls(
            task=task.id,
            kind=task.kind,
            held_out=task.held_out,
            seed=seed,
            success=verdict.success and not refused,
            wrong_writes=verdict.wrong_writes,
            problem="it did not say that it cannot" if refused else verdict.problem,
            status=result.summary.status,
            seconds=sum(answer.duration_s for answer in answers),
            model_calls=len(answers),
            input_tokens=sum(answer.usage.input_tokens for answer in answers),
            cached_tokens=sum(answer.usage.cache_read_tokens for answer in answers),
            output_tokens=sum(answer.usage.output_tokens for answer in answers),
            warnings=list(result.summary.warnings),
            output=result.summary.output_or_partial,
        )

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain data."""
        return asdict(self)


def _nothing(result: Result) -> bool:
    """Whether the run found nothing to do, which is an honest answer to a task about nothing."""
    return any(_object(envelope.output).get("total") == 0 for envelope in result.envelopes)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

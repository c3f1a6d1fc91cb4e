"""The result of a run for the Python API: one shape for tools, agents, agentic tools, composites and workflows.

Everything is computed from the run's journal. What other runs' journals have is read for a run that waits only.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Generic, cast

from msgspec import structs
from typing_extensions import TypeVar

from toolcrib.contracts import (
    ENDED,
    WAITING,
    AgentOutputs,
    CallFinished,
    ErrorCode,
    InvalidInput,
    Json,
    JsonObject,
    OpenQuestion,
    Reason,
    RunEvent,
    RunFinished,
    RunKind,
    RunNotCompleted,
    RunRequest,
    RunResult,
    RunStarted,
    RunStatus,
    StopReason,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    Trace,
    Usage,
    WaitingApproval,
)
from toolcrib.contracts.base.display import fields_in_short, html_table, rich_tree
from toolcrib.contracts.runs.trace import rows_of
from toolcrib.core.executor import error
from toolcrib.core.runs.interrupts.signals import read_tree, waiting_question
from toolcrib.core.runs.views.agent_response import iterations_made
from toolcrib.core.runs.views.handles import agent_pins, handles_of, outputs_of
from toolcrib.core.runs.views.messages import messages_of, system_prompt_of
from toolcrib.core.runs.views.trace import trace_of
from toolcrib.core.runs.views.waiting import NOTHING_WAITS, Waiting, waiting_of
from toolcrib.infrastructure.store import Journal
from toolcrib.llm import Message

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)
ReadT = TypeVar("ReadT")


def result_of(run_id: str, finish: RunFinished) -> RunResult:
    """How a run ended, as its last event tells it."""
    return RunResult(run_id=run_id, **{name: getattr(finish, name) for name in _OUTCOME})


_OUTCOME = RunResult.__struct_fields__[1:]


@dataclass(frozen=True, slots=True)
class CallTraceback:
    """The traceback of an exception that a tool raised in a call."""

    run_id: str
    position: str
    name: str
    """Of the tool."""
    text: str
    """As Python prints it, without secrets; at most 20,000 characters."""


_UNREAD: Final = object()
_NEXT_STEP: Final[Mapping[str, str]] = {
    "queued": "a worker drives it; read it later, or resume it here with crib.resume({run_id!r})",
    "running": "it is still active; follow it with crib.stream({run_id!r})",
    "awaiting_approval": "decide on `result.approvals` with crib.approvals.decide(...), then crib.resume({run_id!r})",
    "awaiting_answer": "answer `result.question` with crib.questions.answer({run_id!r}, ...)",
    "awaiting_client": "bring back the results of `result.tool_calls`, then crib.resume({run_id!r})",
}
"""What to do about a run that has not ended."""


@dataclass(frozen=True, repr=False)
class Result(Generic[OutputT_co]):
    """A run that ended or waits: the same for a tool, an agent, an agentic tool, a composite and a workflow.

    Example:
        result = await crib.invoke("search_deals", {"company": "Acme"})
        print(result.output if result.ok else result.error)
        print([envelope.name for envelope in result.envelopes])
    """

    summary: RunResult
    log: Sequence[RunEvent]
    waiting: Waiting = NOTHING_WAITS
    held: Mapping[str, Json] | None = None
    value: Any = field(default=_UNREAD, compare=False)
    """The answer as an instance of the output type, once it was read."""
    reader: Callable[[Json], Any] | None = field(default=None, compare=False)
    """Reads the answer of this run, also when it ends later."""

    # What came of it --------------------------------------------------------------------------------------------------

    @property
    def ok(self) -> bool:
        """Whether the run completed: it did what it was asked for."""
        return self.summary.status == "completed"

    @property
    def status(self) -> RunStatus:
        """How the run stands: `completed`, `incomplete` with the cause in `error`, and so on."""
        return self.summary.status

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it stopped: `final_answer`, or the limit, denial, question or error; null while it waits."""
        return self.summary.stop_reason

    @property
    def output(self) -> OutputT_co | None:
        """The answer; null unless the run completed.

        Of an agent it is the structured answer if the agent has one, else its text; of everything else what it puts
        out. With an `output_type` it is an instance of that type. `summary.output` is the run's output as stored.
        """
        return cast("OutputT_co | None", self.answer if self.value is _UNREAD else self.value)

    def unwrap(self) -> OutputT_co:
        """The output of a run that completed.

        Raises:
            RunNotCompleted: It did not; the message names the run, its status, the cause and the next step.

        Example:
            result = await crib.invoke("search_deals", {"company": "Acme"})
            print(result.unwrap())
        """
        if self.ok:
            return cast("OutputT_co", self.output)
        stopped = f" ({self.stop_reason})" if self.stop_reason else ""
        cause = f": {self.error.code}: {self.error.message}" if self.error else ""
        next_step = _NEXT_STEP.get(self.status, "see its steps with `toolcrib run trace {run_id}`").format(
            run_id=self.run_id
        )
        msg = f"run {self.run_id} of {self.name!r} has no output: it is {self.status}{stopped}{cause}; {next_step}"
        raise RunNotCompleted(msg, run_id=self.run_id, status=self.status, error=self.error)

    @property
    def handles(self) -> Mapping[str, Json]:
        """Outputs of all pinned handles of an agent, by name."""
        return self.held or {}

    @property
    def partial(self) -> Json:
        """What was done until then by a run that did not complete, if anything."""
        return self.summary.partial

    @property
    def error(self) -> ToolError | None:
        """Why the run did not complete."""
        return self.summary.error

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said of the run besides, such as calls that failed and that the model recovered from."""
        return self.summary.warnings

    # What it was ------------------------------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.summary.run_id

    @property
    def kind(self) -> RunKind:
        """What ran: `tool` for one call of a tool, `agentic`, `agent` or `workflow`."""
        return "tool" if self._request is None else self._request.kind

    @property
    def name(self) -> str:
        """Name of the tool, agent or workflow that ran."""
        return "" if self._request is None else self._request.tool_name

    @property
    def conversation_id(self) -> str | None:
        """The conversation that the run is a turn of, or belongs to."""
        return None if self._request is None else self._request.conversation_id

    @property
    def session_id(self) -> str | None:
        """The session that the run belongs to."""
        return None if self._request is None else self._request.session_id

    # What it used -----------------------------------------------------------------------------------------------------

    @property
    def cost_usd(self) -> Decimal | None:
        """US dollars, with those of nested runs; null means unknown."""
        return self.summary.cost_usd if self._has_stopped else self.trace.cost

    @property
    def cost_unknown(self) -> bool:
        """Whether a paid call had no known price, so that `cost_usd` is a lower bound."""
        return self.summary.cost_unknown if self._has_stopped else self.trace.cost_unknown

    @property
    def usage(self) -> Usage:
        """What the run's own model calls used, in tokens."""
        return self.summary.usage if self._has_stopped else self.trace.usage

    @property
    def tokens(self) -> int:
        """Input and output tokens of the run and of those nested in it."""
        known = self.summary.tokens if self._has_stopped else None
        return self.trace.tokens if known is None else known

    @property
    def iterations(self) -> int:
        """How many answers models have given to the run."""
        return iterations_made(self.log) if self.log else 0

    # What it waits for ------------------------------------------------------------------------------------------------

    @cached_property
    def question(self) -> OpenQuestion | None:
        """What it or a nested run asks; `crib.questions.answer` answers it. Null unless it waits for an answer."""
        return self.waiting.question or waiting_question(self.log, ())

    @property
    def approvals(self) -> tuple[WaitingApproval, ...]:
        """Its calls, and those of nested runs, that wait for a person; `crib.approvals.decide` decides on one."""
        return self.waiting.approvals

    @property
    def tool_calls(self) -> tuple[ToolEnvelope, ...]:
        """Its prepared calls, and those of nested runs, that wait for a client."""
        return self.waiting.tool_calls

    # How it went ------------------------------------------------------------------------------------------------------

    @property
    def envelopes(self) -> Sequence[ToolEnvelope]:
        """The envelopes of the run's calls, in the order in which they ended."""
        return [entry.event.envelope for entry in self.log if isinstance(entry.event, CallFinished)]

    @cached_property
    def messages(self) -> Sequence[Message]:
        """The conversation of the run's own model calls, as the journal has it: what models were told and answered.

        Results of calls are parts of a user message. See `system_prompt` for what stands before them.
        """
        return messages_of(self.log)

    @cached_property
    def system_prompt(self) -> str:
        """The system prompt of the run's last model call; empty if it asked no model."""
        return system_prompt_of(self.log)

    @property
    def tracebacks(self) -> Sequence[CallTraceback]:
        """The tracebacks of exceptions that its tools raised; `crib.executions.tracebacks` has those of nested runs."""
        return tracebacks_of(self.log, self.run_id)

    @cached_property
    def outputs(self) -> AgentOutputs:
        """What an agent puts out, which every run has: its words, and its calls by id."""
        return outputs_of(self.log)

    @cached_property
    def events(self) -> Sequence[RunEvent]:
        """The events of the run, in order."""
        return tuple(self.log)

    @cached_property
    def trace(self) -> Trace:
        """The run step by step; `crib.trace` also has nested runs."""
        return trace_of(self.events)

    @cached_property
    def answer(self) -> Json:
        """The answer as JSON, before it is read as an `output_type`."""
        put_out: Json = self.summary.output
        if not isinstance(put_out, dict) or "response" not in put_out or self.kind != "agent":
            return cast("Json", put_out)
        members = cast("JsonObject", put_out)
        return members["output"] if "output" in members else str(members["response"] or "")

    # Other forms ------------------------------------------------------------------------------------------------------

    def read_as(self, read: Callable[[Json], ReadT]) -> "Result[ReadT]":
        """The same result with an output of a type. If `read` refuses the answer, the result says that it failed.

        Args:
            read: Reads the answer; raises `InvalidInput` for one that cannot be used.
        """
        if not self.ok:
            return cast("Result[ReadT]", replace(self, reader=read))
        try:
            return cast("Result[ReadT]", replace(self, value=read(self.answer), reader=read))
        except InvalidInput as problem:
            failure = error(ErrorCode.VALIDATION_ERROR, Reason.OUTPUT_SCHEMA_MISMATCH, str(problem))
            outcome = {"status": "failed", "stop_reason": "error", "output": None, "partial": self.summary.output}
            failed = structs.replace(self.summary, **outcome, error=failure)
            return cast("Result[ReadT]", replace(self, summary=failed, reader=read))

    @cached_property
    def _request(self) -> RunRequest | None:
        first = self.log[0].event if self.log else None
        return first.request if isinstance(first, RunStarted) else None

    @property
    def _has_stopped(self) -> bool:
        return self.summary.status in ENDED

    def __repr__(self) -> str:
        """One line of bounded length."""
        return fields_in_short(
            "Result",
            name=self.name,
            run_id=self.run_id,
            status=self.status,
            output=self.output,
            error=self.error.message if self.error else None,
            cost_usd=float(self.cost_usd) if self.cost_usd is not None else None,
        )

    def _repr_html_(self) -> str:
        """A table for notebooks, without scripts."""
        return html_table(f"{self.kind} {self.name}", self._facts(), rows_of(self.trace) if self.log else ())

    def __rich__(self) -> object:
        """A tree for terminals."""
        return rich_tree(f"{self.kind} {self.name}", self._facts(), rows_of(self.trace) if self.log else ())

    def _facts(self) -> list[tuple[str, object]]:
        return [
            ("run", self.run_id),
            ("status", self.status if self.stop_reason is None else f"{self.status} ({self.stop_reason})"),
            ("output", self.output),
            ("error", self.error.message if self.error else None),
            ("question", self.question.question if self.question else None),
            ("waiting approvals", ", ".join(each.name for each in self.approvals) or None),
            ("cost in US dollars", None if self.cost_usd is None else str(self.cost_usd)),
            ("tokens", self.tokens or None),
        ]


def tracebacks_of(events: Iterable[RunEvent], run_id: str) -> Sequence[CallTraceback]:
    """The tracebacks of the calls of a run that have ended."""
    ended = (entry.event for entry in events if isinstance(entry.event, CallFinished))
    return [
        CallTraceback(run_id, event.position, event.envelope.name, event.traceback)
        for event in ended
        if event.traceback is not None
    ]


def without_traceback(entry: RunEvent) -> RunEvent:
    """An event as whoever is not the author of a tool may see it."""
    if not isinstance(entry.event, CallFinished) or entry.event.traceback is None:
        return entry
    return entry.model_copy(update={"event": entry.event.model_copy(update={"traceback": None})})


async def read_result(
    journal: Journal,
    find_revision: Callable[[str, str], Awaitable[ToolRevision]],
    summary: RunResult,
    log: Sequence[RunEvent],
) -> Result[Json]:
    """The result of a run, with what it waits for and what its pinned handles hold.

    Args:
        journal: Has the runs. It is read for a run that waits, or of an agent with pins, only.
        find_revision: The revision with a realm and a content hash.
        summary: How the run stands.
        log: Its events.
    """
    waiting = NOTHING_WAITS
    if summary.status in WAITING:
        waiting = waiting_of(await read_tree(journal, summary.run_id))
    first = log[0] if log else None
    if first is None or not isinstance(first.event, RunStarted) or first.event.request.kind != "agent":
        return Result(summary, log, waiting)
    tool = await find_revision(first.realm, first.event.request.content_hash)
    if not agent_pins(tool):
        return Result(summary, log, waiting)
    return Result(summary, log, waiting, await handles_of(journal, await journal.run(summary.run_id), tool, log))

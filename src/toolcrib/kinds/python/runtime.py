"""Executes Python functions that the application added: found by content hash, never imported by name."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, get_args

from msgspec import structs
from pydantic import ValidationError

from toolcrib.contracts import (
    Attachment,
    EgressDenied,
    ErrorCode,
    Fenced,
    InvalidDefinition,
    Json,
    JsonObject,
    Reason,
    ToolRevision,
    Unavailable,
)
from toolcrib.contracts.base.envelope import YIELDED
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.contracts.runs.stream import LogLevel
from toolcrib.core.executor import (
    BlobSink,
    BrokenOff,
    CallFailed,
    Dispatch,
    LiveCall,
    LogLine,
    Outcome,
    Progress,
    error,
)
from toolcrib.core.executor.envelope import legible
from toolcrib.core.policy import filters_of, screen
from toolcrib.core.providers.request_errors import count_request, network_failure
from toolcrib.infrastructure.net import HttpSession, NetworkError
from toolcrib.infrastructure.secrets import Redactor
from toolcrib.infrastructure.store import Doer, NoTransactions, Transactions
from toolcrib.infrastructure.store.ports.transactions import Work
from toolcrib.kinds.python.context import Ask, ToolContext
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.kinds.python.shape import PythonImplementation

if TYPE_CHECKING:
    from toolcrib.kinds.python.asking import Asker
    from toolcrib.kinds.python.files import File

_MESSAGE_LENGTH: Final = 500
"""Characters of a progress message that are shown."""
_LOG_LENGTH: Final = 2_000
"""The same of a log message."""

OwnTool: TypeAlias = Callable[[Dispatch], Awaitable[Outcome]]
"""What a tool that comes with the crib does: unlike a function of the application, it knows for whom it is called."""


class PythonRuntime:
    """Functions by the content hash of their definition, and those that come with the crib by their name.

    Args:
        session: The way out that functions are given.
        transactions: Of the store, for functions that write in its database; without, they are refused.
        blobs: Keep the files that functions return; without, they are only described.
    """

    def __init__(
        self, session: HttpSession, transactions: Transactions | None = None, blobs: BlobSink | None = None
    ) -> None:
        self._session = session
        self._blobs = blobs
        self._transactions = transactions or NoTransactions()
        self._functions: dict[str, FunctionTool[..., object]] = {}
        self._own: dict[str, OwnTool] = {}

    def bind(self, content_hash: str, function: FunctionTool[..., object]) -> None:
        """Make a function the implementation of the definition with this hash."""
        self._functions[content_hash] = function

    def bind_own(self, function: str, tool: OwnTool) -> None:
        """Bind a function name to code of the crib, in all definitions, including those of older releases."""
        self._own[function] = tool

    def lend(self, other: "PythonRuntime") -> None:
        """Have another one serve all functions that this one does."""
        for content_hash, function in self._functions.items():
            other.bind(content_hash, function)
        for name, tool in self._own.items():
            other.bind_own(name, tool)

    def missing(self, tool: ToolRevision) -> str | None:
        """The function of a tool, if it was not added in this process."""
        return None if self.serves(tool) else f"the Python function of {tool.ref}"

    def serves(self, tool: ToolRevision) -> bool:
        """Whether the function of a tool, if it needs one, is available here."""
        implementation = tool.definition.implementation
        return (
            not isinstance(implementation, PythonImplementation)
            or tool.content_hash in self._functions
            or implementation.function in self._own
        )

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Call the function with the validated arguments.

        Whatever the function raises is its failure, not its caller's: also a validation error from inside it. What
        its requests were refused gets the same error as an HTTP tool.
        """
        tool = dispatch.tool
        implementation = tool.definition.implementation
        if type(implementation) is PythonImplementation and implementation.function in self._own:
            return await self._own[implementation.function](dispatch)
        function = self._functions.get(tool.content_hash)
        if function is None:
            message = (
                f"tool {tool.ref!r} is a Python function that this process has not added, or has in another form; "
                "call crib.add(...) with it, unchanged, before the run goes on"
            )
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        if function.is_live:
            with dispatch.context.journal.live_call(dispatch.position, dispatch.attempt) as live:
                return await self._run_live(dispatch, function, live)
        try:
            values = function.values_of(dispatch.input, None)
        except ValidationError as refusal:
            raise _invalid(tool, refusal) from refusal
        files: list[File] = []
        try:
            output = function.as_json(await function.begin(values), files)
        except (CallFailed, EgressDenied, NetworkError) as problem:
            raise _failure(tool, problem) from None
        return await self._with_files(dispatch, Outcome(output), files) if files else Outcome(output)

    async def _with_files(self, dispatch: Dispatch, outcome: Outcome, files: "Sequence[File]") -> Outcome:
        """The outcome with its files as attachments; bytes that cannot be kept are a warning."""
        attachments: dict[str, Attachment] = {}
        metadata = dict(outcome.metadata)
        for file in files:
            attachment = file.as_attachment()
            if self._blobs is None or attachment.url in attachments:
                continue
            made_by, kind = dispatch.context.principal.id, file.media_type
            try:
                await self._blobs.put(file.data, realm=dispatch.tool.realm, made_by=made_by, content_type=kind)
            except Unavailable as problem:
                lost = f"the file {file!r} could not be kept: {problem}"
                metadata["warnings"] = [*metadata.get("warnings", ()), lost]
            else:
                attachments[attachment.url] = attachment
        return structs.replace(outcome, attachments=tuple(attachments.values()), metadata=metadata)

    async def _run_live(self, dispatch: Dispatch, function: FunctionTool[..., object], live: LiveCall) -> Outcome:
        """Call a function that tells something while it runs: it yields its output, or has a `ToolContext`."""
        tool, context = dispatch.tool, None
        if function.takes_context:
            context = self._context_of(dispatch, live, function)
        try:
            values = function.values_of(dispatch.input, context)
        except ValidationError as refusal:
            raise _invalid(tool, refusal) from refusal
        collected, files = None, cast("list[File]", [])
        most = tool.definition.max_output_bytes
        try:
            if function.yields is None:
                output = function.as_json(await function.begin(values), files)
                return await self._with_files(dispatch, Outcome(output), files) if files else Outcome(output)
            collected = function.collected(most, live if _shows_output(dispatch) else None, files)
            await function.collect(values, collected)
        except (CallFailed, EgressDenied, NetworkError) as problem:
            failure = _failure(tool, problem)
            failure.partial = None if collected is None else collected.partial
            raise failure from None
        except (Fenced, StoreUnavailable):
            raise
        except Exception as crash:
            if collected is None or collected.partial is None:
                raise
            raise BrokenOff(collected.partial) from crash
        metadata: JsonObject = {YIELDED: collected.kind}
        if collected.is_cut:
            warning = (
                f"tool {tool.name!r} yielded more than its max_output_bytes={most}, so it was stopped there; raise "
                "max_output_bytes, or yield less"
            )
            metadata["warnings"] = [warning]
        outcome = Outcome(collected.output, metadata=metadata)
        return await self._with_files(dispatch, outcome, files) if files else outcome

    def _context_of(self, dispatch: Dispatch, live: LiveCall, function: FunctionTool[..., object]) -> ToolContext:
        facts = dispatch.context
        return ToolContext(
            report=partial(_report, dispatch, live),
            log_live=partial(_log, dispatch, live),
            ask_caller=_asker(dispatch, function),
            call_id=dispatch.call_id,
            tool=dispatch.tool.name,
            agent=[*facts.callers.values()][-1] if facts.callers else None,
            conversation_id=facts.conversation_id,
            session_id=facts.session_id,
            run_id=dispatch.context.run_id,
            position=dispatch.position,
            realm=dispatch.tool.realm,
            principal=dispatch.context.principal.id,
            idempotency_key=dispatch.idempotency_key,
            attempt=dispatch.attempt,
            auth=dispatch.auth,
            http=self._session.with_request_hook(partial(count_request, dispatch)),
            transact=partial(self._transact, dispatch),
        )

    async def _transact(self, dispatch: Dispatch, work: Work) -> Json:
        """Work of a function in the store's database, once for the call."""
        context, tool = dispatch.context, dispatch.tool.definition
        if not tool.transactional or tool.side_effects != "writes":
            msg = f"tool {tool.name!r} may not write in the store; say transactional=True and side_effects='writes'"
            raise InvalidDefinition(msg)
        doer = Doer(context.run_id, context.epoch, dispatch.idempotency_key, context.principal.id)
        return await self._transactions.transact(doer, work)


def _asker(
    dispatch: Dispatch, function: FunctionTool[..., object]
) -> Callable[[Sequence[Ask]], Awaitable[Sequence[Any]]]:
    """What asks for a call; it loads with the first question."""
    made: list[Asker] = []

    async def ask(asks: Sequence[Ask]) -> Sequence[Any]:
        if not made:
            from toolcrib.kinds.python.asking import Asker  # noqa: PLC0415 - rarely needed

            made.append(Asker(dispatch, is_async=function.is_async))
        return await made[0].ask(asks)

    return ask


def _failure(tool: ToolRevision, problem: CallFailed | EgressDenied | NetworkError) -> CallFailed:
    """The failure that an exception of a function is; the function itself has run."""
    failure = problem if isinstance(problem, CallFailed) else network_failure(tool.definition, problem)
    failure.sent = True
    return failure


def _shows_output(dispatch: Dispatch) -> bool:
    """Whether pieces of an output may be shown before the whole of it was redacted, filtered and mapped."""
    definition, guardrails = dispatch.tool.definition, dispatch.context.policy.guardrails
    return not (dispatch.auth or definition.select or filters_of(guardrails, "tool_output"))


def _report(dispatch: Dispatch, live: LiveCall, done: float, total: float | None, message: str) -> None:
    """Show how far a call has come, without secrets and as content filters let it pass."""
    if not isfinite(done) or (total is not None and not isfinite(total)):
        return
    shown = _shown(dispatch, message)[:_MESSAGE_LENGTH]
    live.report(Progress(float(done), None if total is None else float(total), shown))


def _log(dispatch: Dispatch, live: LiveCall, level: LogLevel, message: str) -> None:
    """Show a message."""
    live.log(LogLine(level if level in get_args(LogLevel) else "info", _shown(dispatch, message)[:_LOG_LENGTH]))


def _shown(dispatch: Dispatch, message: str) -> str:
    """What a function says without secrets, and as content filters let it pass."""
    screening = screen(
        dispatch.context.policy.guardrails, "tool_output", Redactor(dispatch.auth.values()).text(legible(str(message)))
    )
    return str(screening.value) if screening.passes else ""


def _invalid(tool: ToolRevision, refusal: ValidationError) -> CallFailed:
    """Arguments that met the schema and not the type hints: nothing ran."""
    listed = "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in refusal.errors())
    message = f"the arguments of {tool.name!r} are not valid: {listed}. Correct them and call again"
    return CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message), sent=False)

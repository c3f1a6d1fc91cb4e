"""Executes Python functions that the application added: found by content hash, never imported by name."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from pydantic import ValidationError

from toolcrib.contracts import EgressDenied, ErrorCode, InvalidDefinition, Json, Reason, ToolRevision
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers.request_errors import count_request, network_failure
from toolcrib.infrastructure.net import HttpSession, NetworkError
from toolcrib.infrastructure.store import Doer, NoTransactions, Transactions
from toolcrib.infrastructure.store.ports.transactions import Work
from toolcrib.kinds.python.context import ToolContext
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.kinds.python.shape import PythonImplementation

OwnTool: TypeAlias = Callable[[Dispatch], Awaitable[Outcome]]
"""What a tool that comes with the crib does: unlike a function of the application, it knows for whom it is called."""


class PythonRuntime:
    """Functions by the content hash of their definition, and those that come with the crib by their name.

    Args:
        session: The way out that functions are given.
        transactions: Of the store, for functions that write in its database; without, they are refused.
    """

    def __init__(self, session: HttpSession, transactions: Transactions | None = None) -> None:
        self._session = session
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
        context = self._context_of(dispatch) if function.takes_context else None
        try:
            values = function.values_of(dispatch.input, context)
        except ValidationError as refusal:
            raise _invalid(tool, refusal) from refusal
        try:
            return Outcome(function.as_json(await function.begin(values)))
        except (EgressDenied, NetworkError) as problem:
            failure = network_failure(tool.definition, problem)
            failure.sent = True  # the function itself has run
            raise failure from None
        except CallFailed as failure:
            failure.sent = True
            raise

    def _context_of(self, dispatch: Dispatch) -> ToolContext:
        facts = dispatch.context
        return ToolContext(
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


def _invalid(tool: ToolRevision, refusal: ValidationError) -> CallFailed:
    """Arguments that met the schema and not the type hints: nothing ran."""
    listed = "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in refusal.errors())
    message = f"the arguments of {tool.name!r} are not valid: {listed}. Correct them and call again"
    return CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message), sent=False)

"""The one pipeline that runs tools.

resolve, guard, permit, validate, guardrails, confirm, rate limit, cache, secrets, intent, dispatch with retries,
redaction, response mapping, output check, content filters, truncation, envelope. Whatever kind a tool is and whichever
surface asked, it goes through here, so a denied call is denied everywhere. A tool's failure is an envelope. What leaves
`execute` otherwise is not about the tool: cancellation, suspension, and a journal that does not take the intent.

The compiled schemas of tools, at hand by content hash, which names a definition's content for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeVar, cast

import orjson

from toolcrib.contracts import (
    Attachment,
    CallStarted,
    ErrorCode,
    Fenced,
    GuardDecision,
    InvalidInput,
    Json,
    JsonObject,
    Reason,
    ToolcribError,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.core.executor import guardrails as capping
from toolcrib.core.executor.approval import confirm, request_of
from toolcrib.core.executor.attempts import classified, crashed, explained, labelled, time_limit, wait_before_retry
from toolcrib.core.executor.concurrency import Rates
from toolcrib.core.executor.envelope import Denied, Receipt, denial, error, plain
from toolcrib.core.executor.fallbacks import (
    failed_too,
    failure_of,
    fallback_of,
    find_fallback,
    record_of,
    told_of,
    total_cost,
)
from toolcrib.core.executor.guardrails import heed, screen_arguments, screen_failure, screen_output
from toolcrib.core.executor.ports import (
    Attic,
    CallContext,
    CallFailed,
    Clock,
    Dispatch,
    Dispatcher,
    Outcome,
    Results,
    Secrets,
    ToolCall,
    Tools,
)
from toolcrib.core.executor.results import (
    Remembering,
    check_output,
    fit,
    sealed_again,
    select_output,
    take,
    told_cost,
    warned,
)
from toolcrib.core.policy import (
    Accounts,
    Budget,
    Caps,
    Guardrails,
    NoAccounts,
    as_of_now,
    decide,
    is_untrusted,
    permit,
)
from toolcrib.core.registry import Problem, SchemaValidator, compile_schema

_MOST = 4096


class Schemas(NamedTuple):
    """What one definition promises."""

    input: SchemaValidator
    output: SchemaValidator | None


class CompiledSchemas:
    """Compiles once per definition; making a key of the schema itself would cost more than the validation."""

    def __init__(self) -> None:
        self._known: dict[str, Schemas] = {}

    def of(self, tool: ToolRevision) -> Schemas:
        """The schemas of a revision.

        Raises:
            InvalidDefinition: One of them is not a schema.
        """
        known = self._known.get(tool.content_hash)
        if known is None:
            promised = tool.definition.output_schema
            output = None if promised is None else compile_schema(promised)
            known = Schemas(compile_schema(tool.definition.input_schema), output)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[tool.content_hash] = known
        return known


T = TypeVar("T")

_MOST_SHOWN = 200
"""Characters of an unknown name in a message."""


class _Taken:
    """What a call has taken from the budget: its price at once, so that calls beside it cannot spend it too."""

    def __init__(self, budget: Budget, price: Decimal, *, again: bool) -> None:
        self.dispatched = again
        """A call that a crash cut off was dispatched before."""
        self.paid = False
        self._budget = budget
        self._price = price
        budget.add_cost(price)

    def settle(self) -> None:
        """Give back what was not used."""
        if not self.dispatched:
            self._budget.return_tool_call()
        if not self.paid:
            self._budget.add_cost(-self._price)


class Executor:
    """Runs calls. Everything it needs comes in through ports.

    Args:
        tools: Finds tools by name and version range.
        dispatcher: Runs a tool by its kind of implementation.
        secrets: Resolves references to secrets.
        results: Cached results of earlier calls.
        attic: Keeps outputs that are too large for an envelope.
        rates: Counts executions against rate limits.
        clock: Time.
        guardrails: Asks the rules of agents; those that everybody has if null.
        accounts: Finds service accounts; there are none if null.
        caps: On what many runs spend together; there are none if null.
        deadline: Ends a call after so many seconds; in a replay when it ended then.
    """

    def __init__(
        self,
        *,
        tools: Tools,
        dispatcher: Dispatcher,
        secrets: Secrets,
        results: Results,
        attic: Attic,
        rates: Rates,
        clock: Clock,
        guardrails: Guardrails | None = None,
        accounts: Accounts | None = None,
        caps: Caps | None = None,
        deadline: Callable[[float], asyncio.Timeout] = asyncio.timeout,
    ) -> None:
        self._tools = tools
        self._dispatcher = dispatcher
        self._secrets = secrets
        self._results = Remembering(results, clock)
        self._attic = attic
        self._rates = rates
        self._clock = clock
        self.guardrails = guardrails or Guardrails()
        self.caps = caps
        self._accounts = accounts or NoAccounts()
        self._deadline = deadline
        self._schemas = CompiledSchemas()

    async def execute(self, call: ToolCall, context: CallContext) -> ToolEnvelope:
        """Run one call to its end.

        Args:
            call: Position, name, version range and arguments.
            context: For whom, under which policy, in which run.

        Returns:
            The envelope: on success, failure, denial and time-out alike.
        """
        receipt = Receipt(call, context, self._clock)
        try:
            tool = receipt.tool = self._resolve(call, context)
            async with context.lanes.slot(alone=tool.definition.sequential):
                receipt.spent("queue")
                return await self._run(receipt, tool)
        except Denied as refusal:
            return receipt.seal("denied", error=refusal.error)
        except CallFailed as failure:
            receipt.hide(failure.secrets)
            screen_failure(receipt, failure)
            failure.error = labelled(failure, receipt)
            receipt.tainted |= failure.tainted
            receipt.cost_usd = receipt.cost_usd if failure.cost_usd is None else failure.cost_usd
            return receipt.seal(
                "error", error=failure.error, http_status=failure.http_status, metadata=failure.metadata
            )

    def admit(self, call: ToolCall, context: CallContext) -> ToolRevision:
        """Resolve, guard, permit and validate without running: the door for what becomes a run of its own.

        Raises:
            CallFailed: The call would not run; its error says why.
        """
        return self._admitted(call, context)[0]

    def passes(self, call: ToolCall, context: CallContext) -> bool:
        """Whether a call would run, without anybody being asked."""
        try:
            return self._admitted(call, context)[1].outcome == "allow"
        except CallFailed:
            return False

    def _admitted(self, call: ToolCall, context: CallContext) -> tuple[ToolRevision, GuardDecision]:
        receipt = Receipt(call, context, self._clock)
        tool = receipt.tool = self._resolve(call, context)
        decision = self._guard(receipt, tool)
        context.budget.return_tool_call()
        self._permit(receipt, tool)
        self._validate(receipt, tool)
        return tool, self._heed(receipt, tool, decision)

    async def _run(self, receipt: Receipt, tool: ToolRevision) -> ToolEnvelope:
        context, definition = receipt.context, tool.definition
        decision = self._guard(receipt, tool)
        taken = _Taken(context.budget, definition.cost_usd_per_call or Decimal(0), again=context.attempt > 1)
        try:
            self._permit(receipt, tool)
            schemas = self._validate(receipt, tool)
            prepared = context.journal.prepared_before(receipt.call.position)
            if prepared is not None:
                taken.dispatched = taken.paid = True
                return await self._take_up(receipt, tool, prepared, schemas.output)
            decision = self._heed(receipt, tool, decision)
            if context.dry_run and definition.side_effects == "writes":
                return receipt.seal("skipped", metadata={"dry_run": True})
            if decision.outcome == "ask":
                await self._confirm(receipt, tool, decision)
            await self._limit_rate(receipt, tool)
            key = self._results.key(receipt, tool)
            kept = await self._results.recall(key)
            if kept is not None:
                receipt.spent("policy")
                return self._recalled(receipt, tool, kept)
            auth = await self._resolve_secrets(definition, context)
            receipt.hide(tuple(auth.values()))
            decision = await capping.reserve(self.caps, receipt, tool, decision)
            await context.journal.intend(self._intent(receipt, tool, decision))
            receipt.spent("policy")
            taken.dispatched = taken.paid = True
            try:
                outcome = await self._dispatch(receipt, tool, auth)
            except CallFailed as failure:
                taken.paid = False
                return await self._fall_back(receipt, tool, failure, schemas.output)
        finally:
            taken.settle()
            await capping.settle(self.caps, receipt, definition, made=taken.dispatched, paid=taken.paid)
        envelope = await self._finish(receipt, tool, outcome, schemas.output)
        return await self._results.keep(key, receipt, tool, envelope)

    # Before anything runs ---------------------------------------------------------------------------------------------

    def _resolve(self, call: ToolCall, context: CallContext) -> ToolRevision:
        version = call.version or context.policy.versions.get(call.name)
        try:
            tool = self._tools.find(context.principal.realm, call.name, version)
        except InvalidInput as problem:
            message = f"there is no tool {_wanted(call.name, version)!r}: {problem}"
            raise Denied(error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_FOUND, message)) from problem
        if tool is not None:
            return tool
        allowed = sorted(context.policy.allowed or ())
        hint = f"; the tools are: {', '.join(allowed[:20])}" if allowed else ""
        message = f"there is no tool {_wanted(call.name, version)!r}{hint}"
        raise Denied(error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_FOUND, message))

    def _guard(self, receipt: Receipt, tool: ToolRevision) -> GuardDecision:
        decision = decide(tool, receipt.context.policy, receipt.context.budget, receipt.call.position)
        receipt.spent("policy")
        if decision.outcome == "deny":
            raise denial(decision)
        return decision

    def _permit(self, receipt: Receipt, tool: ToolRevision) -> None:
        denied = permit(tool, as_of_now(receipt.context.principal, self._accounts))
        receipt.spent("policy")
        if denied is not None:
            raise denial(denied)

    def _heed(self, receipt: Receipt, tool: ToolRevision, decision: GuardDecision) -> GuardDecision:
        """The decision with what the guardrails say of the arguments, which may have parts replaced."""
        context = receipt.context
        if not context.policy.guardrails:
            return decision
        screening = screen_arguments(context, cast("JsonObject", receipt.input))
        if screening.decision is not None:
            receipt.ask(screening.value)
            receipt.approved_input = receipt.approved_input and receipt.input
            self._validate(receipt, tool)
        decision = heed(self.guardrails, context, tool, receipt.input, decision, screening.decision)
        receipt.spent("policy")
        return decision

    def _validate(self, receipt: Receipt, tool: ToolRevision) -> Schemas:
        arguments = receipt.input
        if not isinstance(arguments, dict):
            why = f", and these are not JSON: {receipt.not_json}" if receipt.not_json else ""
            message = f"the arguments of {tool.name!r} must be one JSON object{why}; send it again, complete"
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INVALID_ARGUMENTS_JSON, message))
        narrowed = receipt.context.policy.narrowed.get(tool.name)
        try:
            schemas = self._schemas.of(tool)
            filled: JsonObject = plain(schemas.input.with_defaults(cast("JsonObject", arguments)))
            problems = compile_schema(narrowed).problems(filled) if narrowed is not None else ()
        except InvalidInput as problem:
            message = f"the arguments of {tool.name!r} cannot be checked, because a schema is not usable: {problem}"
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)) from problem
        problems = problems or schemas.input.problems(filled)
        if problems:
            raise CallFailed(_invalid(tool, problems))
        receipt.accept(filled)
        receipt.spent("validate")
        return schemas

    async def _confirm(self, receipt: Receipt, tool: ToolRevision, asks: GuardDecision) -> None:
        """Ask a person; the arguments are judged anew if the person edited them."""
        edited = await confirm(receipt, request_of(receipt, tool, asks, self._clock))
        if edited is None:
            return
        receipt.ask(edited)
        receipt.approved_input = receipt.input
        self._validate(receipt, tool)
        self._heed(receipt, tool, asks)

    def _recalled(self, receipt: Receipt, tool: ToolRevision, kept: JsonObject) -> ToolEnvelope:
        """What an equal call has brought before, as this run's guardrails let it pass."""
        output, metadata = screen_output(receipt, kept["output"], kept["metadata"])
        return sealed_again(receipt, tool, {**kept, "output": output, "metadata": metadata})

    async def _limit_rate(self, receipt: Receipt, tool: ToolRevision) -> None:
        limit = tool.definition.rate_limit
        if limit is None:
            return
        wait = await self._rates.take(f"{tool.realm}/{tool.name}", limit, now=self._clock.monotonic())
        if wait is not None:
            message = f"tool {tool.name!r} may run {limit.count} times in {limit.per_s:g} s; wait {wait:.1f} s"
            refused = error(ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED, message)
            raise CallFailed(refused.model_copy(update={"retry_after_s": wait}))

    async def _resolve_secrets(self, definition: ToolDefinition, context: CallContext) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for secret in definition.secrets:
            try:
                value = await self._secrets.resolve(secret.reference, context.principal)
            except ToolcribError as problem:
                message = (
                    f"tool {definition.name!r} needs its secret {secret.name!r}, which cannot be resolved: {problem}"
                )
                raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message)) from problem
            if value is not None:
                found[secret.name] = value
            elif secret.required:
                message = f"tool {definition.name!r} needs {secret.reference}, which is not set or not released"
                raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
        return found

    def _intent(self, receipt: Receipt, tool: ToolRevision, decision: GuardDecision) -> CallStarted:
        return CallStarted(
            position=receipt.call.position,
            call_id=receipt.call_id,
            name=tool.name,
            version=tool.version,
            content_hash=tool.content_hash,
            side_effects=tool.definition.side_effects,
            input=receipt.input,
            idempotency_key=receipt.idempotency_key,
            decision=decision,
            attempt=receipt.context.attempt,
        )

    # The effect and after ---------------------------------------------------------------------------------------------

    async def _dispatch(self, receipt: Receipt, tool: ToolRevision, auth: Mapping[str, str]) -> Outcome:
        definition = tool.definition
        receipt.tainted = is_untrusted(definition)
        failed = receipt.context.journal.failed_before(receipt.call.position)
        if failed is not None:
            receipt.attempts += 1
            receipt.tainted |= failed.tainted
            raise failure_of(failed)
        limit = time_limit(definition, receipt.call)
        try:
            async with self._deadline(limit.seconds):
                return await self._attempt_until_done(receipt, tool, auth)
        except TimeoutError:
            message = f"tool {tool.name!r} did not end within {limit.whose}; the effect is unknown"
            late = error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, message)
            raise CallFailed(explained(definition, late, None)) from None
        except CallFailed as failure:
            failure.error = explained(definition, failure.error, failure.http_status)
            receipt.tainted |= failure.tainted
            screen_failure(receipt, failure)
            raise
        finally:
            receipt.spent("execute")

    async def _attempt_until_done(self, receipt: Receipt, tool: ToolRevision, auth: Mapping[str, str]) -> Outcome:
        text = orjson.dumps(receipt.input)
        while True:
            receipt.attempts += 1
            dispatch = Dispatch(
                tool=tool,
                input=orjson.loads(text),
                auth=auth,
                idempotency_key=receipt.idempotency_key,
                position=receipt.call.position,
                attempt=receipt.attempts,
                context=receipt.context,
                timeout_s=receipt.call.timeout_s,
            )
            try:
                return await _contained(self._dispatcher.dispatch(dispatch), tool.definition)
            except CallFailed as failure:
                wait = wait_before_retry(tool.definition, failure, receipt.attempts)
                if wait is None:
                    raise
                receipt.tried(failure)
            await self._clock.sleep(wait)
            if tool.definition.side_effects == "writes":
                await receipt.context.journal.fence()

    async def _fall_back(
        self,
        receipt: Receipt,
        tool: ToolRevision,
        failure: CallFailed,
        promised: SchemaValidator | None,
    ) -> ToolEnvelope:
        """Call what stands in for a tool that has failed; its output counts."""
        definition, context = tool.definition, receipt.context
        ref = fallback_of(definition, failure)
        if ref is None:
            raise failure
        receipt.hide(failure.secrets)
        record = record_of(tool, failure, receipt.told(failure.error))
        try:
            fallback = find_fallback(ref, tool, self._tools, context)
            spawned = context.journal.spawn(
                receipt.call.position,
                fallback,
                receipt.input,
                instead_of=record,
                timeout_s=receipt.call.timeout_s,
            )
            result = await _contained(spawned, fallback.definition)
        except (CallFailed, InvalidInput) as problem:
            raise failed_too(failure, ref, str(problem)) from problem
        finally:
            receipt.spent("execute")
        receipt.cost_usd = total_cost(record, result)
        receipt.tainted |= result.tainted
        metadata = told_of(record, fallback, result)
        if result.error is not None:
            raise failed_too(failure, ref, result.error.message, metadata, effect=result.error.effect)
        receipt.acted = result.wrote is not False
        output = take(definition, result.output, receipt.redactor)
        metadata = check_output(definition, promised, output, metadata)
        return await self._pack(receipt, tool, output, metadata, attachments=result.attachments)

    async def _finish(
        self, receipt: Receipt, tool: ToolRevision, outcome: Outcome, promised: SchemaValidator | None
    ) -> ToolEnvelope:
        definition = tool.definition
        receipt.acted = outcome.metadata.get("wrote", definition.runs_on == "server")
        receipt.cost_usd = outcome.cost_usd if outcome.cost_usd is not None else definition.cost_usd_per_call
        receipt.hide(outcome.secrets)
        receipt.tainted |= outcome.tainted
        brought = take(definition, outcome.output, receipt.redactor)
        told = told_cost(definition, brought)
        self._charge(receipt, definition, told)
        await capping.add(self.caps, receipt, definition, told)
        output, metadata = select_output(definition, brought), outcome.metadata
        for_client = definition.runs_on == "client"
        if not for_client:
            metadata = check_output(definition, promised, output, metadata)
        envelope = await self._pack(
            receipt,
            tool,
            output,
            metadata,
            http_status=outcome.http_status,
            attachments=outcome.attachments,
            for_client=for_client,
        )
        return await self._hand_off(receipt, tool, envelope, promised) if for_client else envelope

    def _charge(self, receipt: Receipt, definition: ToolDefinition, told: Decimal | None) -> None:
        """Put what a call says that it cost in the place of the price that was reserved for it."""
        if told is not None:
            receipt.context.budget.add_cost(told - (definition.cost_usd_per_call or Decimal(0)))
            receipt.cost_usd = told

    async def _pack(
        self,
        receipt: Receipt,
        tool: ToolRevision,
        output: Json,
        metadata: JsonObject,
        *,
        http_status: int | None = None,
        attachments: tuple[Attachment, ...] = (),
        for_client: bool = False,
    ) -> ToolEnvelope:
        output, metadata = screen_output(receipt, output, metadata)
        limit, owner = tool.definition.max_output_bytes, receipt.context.principal.id
        fitted = await fit(output, limit, self._attic, realm=tool.realm, made_by=owner)
        return receipt.seal(
            "success",
            output=fitted.output,
            http_status=http_status,
            metadata=warned(metadata, fitted.warning) if fitted.warning else metadata,
            attachments=(*attachments, *fitted.attachments),
            truncated=fitted.truncated,
            for_client=for_client,
        )

    async def _take_up(
        self, receipt: Receipt, tool: ToolRevision, prepared: ToolEnvelope, promised: SchemaValidator | None
    ) -> ToolEnvelope:
        """Go on with a call that was handed to a client in an earlier life of the run."""
        receipt.take_up(prepared)
        receipt.tainted = is_untrusted(tool.definition)
        self._charge(receipt, tool.definition, prepared.cost_usd)
        envelope = await self._hand_off(receipt, tool, prepared, promised)
        return await self._results.keep(self._results.key(receipt, tool), receipt, tool, envelope)

    async def _hand_off(
        self, receipt: Receipt, tool: ToolRevision, prepared: ToolEnvelope, promised: SchemaValidator | None
    ) -> ToolEnvelope:
        """What a client makes of a prepared call. The tool's output is what the client brings."""
        result = await receipt.context.journal.hand_off(prepared)
        receipt.spent("wait")
        receipt.tainted |= result.tainted
        if result.error is not None:
            raise CallFailed(classified(result.error), metadata=result.metadata)
        output = take(tool.definition, result.output, receipt.redactor)
        metadata = check_output(tool.definition, promised, output, result.metadata)
        return await self._pack(receipt, tool, output, metadata)


def _wanted(name: str, version: str | None) -> str:
    return f"{name[:_MOST_SHOWN]}@{version[:_MOST_SHOWN]}" if version else name[:_MOST_SHOWN]


def _invalid(tool: ToolRevision, problems: Sequence[Problem]) -> ToolError:
    listed = "; ".join(map(str, problems[:5]))
    message = f"the arguments of {tool.name!r} are not valid: {listed}. Correct them and call again"
    found = [problem.as_json() for problem in problems]
    return error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message, problems=found)


async def _contained(work: Awaitable[T], tool: ToolDefinition) -> T:
    """What a tool brings; whatever it raises is its failure."""
    try:
        return await work
    except (CallFailed, Fenced, StoreUnavailable):
        raise
    except asyncio.CancelledError as crash:
        if _is_cancelled():
            raise
        raise crashed(tool, crash) from crash
    except (Exception, SystemExit) as crash:
        raise crashed(tool, crash) from crash


def _is_cancelled() -> bool:
    """Whether the cancellation that was caught is ours, and not that of something which the tool had waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0

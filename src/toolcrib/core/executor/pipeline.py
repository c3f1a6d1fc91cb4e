"""The pipeline of every tool call.

Its stages: resolve, guard, permit, validate, guardrails, confirm, rate limit, cache, secrets, intent, dispatch with
retries, redaction, response mapping, output check, content filters, truncation, envelope. All kinds of tools use it
from all interfaces, so a denied call is denied everywhere. A tool's failure is an envelope. `execute` raises only on
cancellation, suspension, or a journal that does not accept the intent.

A call for which most of these stages have nothing to do is made by its tool's plan (`plans`), in `execute` itself. All
others go through `_run`, which is the reference for both; replays always do, as they answer for some of the stages.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar, cast

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
from toolcrib.core.executor.concurrency import Rates
from toolcrib.core.executor.envelope import Denied, EnvelopeBuilder, denial, error, plain_with_text
from toolcrib.core.executor.fallbacks import (
    failure_of,
    fallback_metadata,
    fallback_of,
    find_fallback,
    record_of,
    total_cost,
    with_fallback_problem,
)
from toolcrib.core.executor.guardrails import apply_guardrails, screen_arguments, screen_failure, screen_output
from toolcrib.core.executor.plans import CallPlan, CallPlans, OrdinaryCall, ToolSchemas, fail, resume
from toolcrib.core.executor.ports import (
    BlobSink,
    BrokenOff,
    CallContext,
    CallFailed,
    CallRequest,
    Clock,
    Dispatch,
    Dispatcher,
    Outcome,
    Results,
    SecretResolver,
    Tools,
)
from toolcrib.core.executor.results import (
    EnvelopeCache,
    FittedOutput,
    check_output,
    cost_from_output,
    fit,
    seal_cached,
    select_output,
    take,
    with_warning,
)
from toolcrib.core.executor.retries import (
    crash_failure,
    error_with_effect,
    time_limit,
    time_out,
    wait_before_retry,
    was_sent,
    with_author_message,
    with_reason,
)
from toolcrib.core.policy import (
    Accounts,
    Budget,
    Caps,
    Guardrails,
    NoAccounts,
    TakeCall,
    as_of_now,
    decide,
    is_untrusted,
    permit,
    take_call,
)
from toolcrib.core.registry import SchemaProblem, SchemaValidator, compile_schema

T = TypeVar("T")

_MOST_SHOWN = 200
"""Characters of an unknown name in a message."""
_NO_SECRETS: Final[Mapping[str, str]] = {}


class _BudgetReservation:
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


class ExecutionRules(NamedTuple):
    """What calls are held against, beside their own policy."""

    guardrails: Guardrails | None = None
    """Asks the rules of agents; those that everybody has if null."""
    accounts: Accounts | None = None
    """Finds service accounts; there are none if null."""
    caps: Caps | None = None
    """On what many runs spend together; there are none if null."""
    deadline: Callable[[float], asyncio.Timeout] = asyncio.timeout
    """Ends a call after so many seconds; in a replay when it ended then."""
    take_call: TakeCall = take_call
    """Counts a call against the limits of its run."""
    shares_calls: bool = True
    """Whether a call waits for the result of an equal one that is being made; not in a replay."""

    @property
    def uses_plans(self) -> bool:
        """Whether ordinary calls are made by their tools' plans: not if a stage that these have is another one."""
        return self.deadline is asyncio.timeout and self.take_call is take_call and self.shares_calls


class Executor:
    """Runs calls. Everything it needs comes in through ports.

    Args:
        tools: Finds tools by name and version range.
        dispatcher: Runs a tool by its kind of implementation.
        secrets: Resolves references to secrets.
        results: Cached results of earlier calls.
        blob_sink: Keeps outputs that are too large for an envelope.
        rates: Counts executions against rate limits.
        clock: Time.
        rules: What calls are held against.
    """

    def __init__(
        self,
        *,
        tools: Tools,
        dispatcher: Dispatcher,
        secrets: SecretResolver,
        results: Results,
        blob_sink: BlobSink,
        rates: Rates,
        clock: Clock,
        rules: ExecutionRules | None = None,
    ) -> None:
        rules = rules or ExecutionRules()
        self._tools = tools
        self._dispatcher = dispatcher
        self._secrets = secrets
        self._results = EnvelopeCache(results, clock, shares=rules.shares_calls)
        self._blob_sink = blob_sink
        self._rates = rates
        self._clock = clock
        self._now, self._monotonic = clock.now, clock.monotonic
        self.guardrails = rules.guardrails or Guardrails()
        self.caps = rules.caps
        self._accounts = rules.accounts or NoAccounts()
        self._deadline = rules.deadline
        self._take_call = rules.take_call
        self._plans = CallPlans()
        self._schemas = self._plans.schemas
        self._uses_plans = rules.uses_plans

    async def execute(self, call: CallRequest, context: CallContext) -> ToolEnvelope:
        """Run one call to its end.

        Args:
            call: Position, name, version range and arguments.
            context: For whom, under which policy, in which run.

        Returns:
            The envelope: on success, failure, denial and time-out alike.
        """
        monotonic = self._monotonic
        started, began = self._now(), monotonic()
        plan = self._plan_of(call, context) if self._uses_plans else None
        builder = None
        if plan is None:
            builder = EnvelopeBuilder(call, context, self._clock, (started, began))
            return await self._settle(builder, self._run_in_turn(builder))
        lanes = context.lanes
        if not lanes.enter_at_once(alone=plan.alone):
            builder = EnvelopeBuilder(
                call, context, self._clock, (started, began)
            )  # with the arguments as they are now
            await lanes.enter(alone=plan.alone)
        try:
            queued = monotonic()
            principal = context.principal
            if principal.kind == "service":
                principal = as_of_now(principal, self._accounts)
            if plan.allows(call, context, principal):
                given = call.input if builder is None else builder.input
                made = plan.accept(call, context, given, (started, began, queued, monotonic()), monotonic)
            else:
                made = None
            if made is None:
                builder = builder or EnvelopeBuilder(call, context, self._clock, (started, began))
                return await self._settle(builder, self._run(builder, plan.tool))
            intent = plan.intent(made)
            context.budget.count_tool_call()
            try:
                await context.journal.intend(intent)
            except BaseException:
                context.budget.return_tool_call()
                raise
            now = monotonic()
            made.policy_s += now - made.last
            made.last = now
            ended = self._begin(made, plan)
            return ended if type(ended) is ToolEnvelope else await cast("Awaitable[ToolEnvelope]", ended)
        finally:
            lanes.leave()

    async def _settle(self, builder: EnvelopeBuilder, work: Awaitable[ToolEnvelope]) -> ToolEnvelope:
        """The envelope that stages make, or that of what they refuse the call for or have failed with."""
        try:
            return await work
        except Denied as refusal:
            return builder.build("denied", error=refusal.error)
        except CallFailed as failure:
            builder.add_secrets(failure.secrets)
            screen_failure(builder, failure)
            failure.error = error_with_effect(failure, builder)
            builder.tainted |= failure.tainted
            builder.cost_usd = builder.cost_usd if failure.cost_usd is None else failure.cost_usd
            return await self._pack_failure(builder, failure)
        finally:
            if builder.ongoing is not None:
                self._results.end(builder.ongoing)

    async def _run_in_turn(self, builder: EnvelopeBuilder) -> ToolEnvelope:
        """Find the tool of a call, and run it when its turn has come."""
        lanes = builder.context.lanes
        tool = builder.tool = self._resolve(builder.call, builder.context)
        await lanes.enter(alone=tool.definition.sequential)
        try:
            return await self._run(builder, tool)
        finally:
            lanes.leave()

    def admit(self, call: CallRequest, context: CallContext) -> ToolRevision:
        """Resolve, guard, permit and validate without running: the door for what becomes a run of its own.

        Raises:
            CallFailed: The call would not run; its error says why.
        """
        return self._check_call(call, context)[0]

    def passes(self, call: CallRequest, context: CallContext) -> bool:
        """Whether a call would run, without anybody being asked."""
        try:
            return self._check_call(call, context)[1].outcome == "allow"
        except CallFailed:
            return False

    def _check_call(self, call: CallRequest, context: CallContext) -> tuple[ToolRevision, GuardDecision]:
        builder = EnvelopeBuilder(call, context, self._clock)
        tool = builder.tool = self._resolve(call, context)
        decision = self._guard(builder, tool)
        context.budget.return_tool_call()
        self._permit(builder, tool)
        self._validate(builder, tool)
        return tool, self._apply_guardrails(builder, tool, decision)

    async def _run(self, builder: EnvelopeBuilder, tool: ToolRevision) -> ToolEnvelope:
        builder.tool = tool
        builder.lap("queue")
        context, definition = builder.context, tool.definition
        decision = self._guard(builder, tool)
        reservation = _BudgetReservation(
            context.budget, definition.cost_usd_per_call or Decimal(0), again=context.attempt > 1
        )
        try:
            self._permit(builder, tool)
            schemas = self._validate(builder, tool)
            prepared = context.journal.find_client_call(builder.call.position)
            if prepared is not None:
                reservation.dispatched = reservation.paid = True
                return await self._take_up(builder, tool, prepared, schemas.output)
            decision = self._apply_guardrails(builder, tool, decision)
            if context.dry_run and definition.side_effects == "writes":
                return builder.build("skipped", metadata={"dry_run": True})
            if decision.outcome == "ask":
                await self._confirm(builder, tool, decision)
            await self._limit_rate(builder, tool)
            key = self._results.key(builder, tool)
            kept = await self._results.recall(key, builder, tool)
            if kept is not None:
                builder.lap("policy")
                return self._envelope_from_cache(builder, tool, kept)
            auth = await self._resolve_secrets(definition, context)
            builder.add_secrets(tuple(auth.values()))
            decision = await capping.reserve(self.caps, builder, tool, decision)
            await context.journal.intend(self._intent(builder, tool, decision))
            builder.lap("policy")
            reservation.dispatched = reservation.paid = True
            try:
                outcome = await self._dispatch(builder, tool, auth)
            except CallFailed as failure:
                reservation.paid = False
                reservation.dispatched = _uses_budget(definition, builder, failure)
                return await self._fall_back(builder, tool, failure, schemas.output)
        finally:
            reservation.settle()
            await capping.settle(self.caps, builder, definition, made=reservation.dispatched, paid=reservation.paid)
        envelope = await self._finish(builder, tool, outcome, schemas.output)
        return await self._results.keep(key, builder, tool, envelope)

    @contextmanager
    def intercepted(self, intercept: Callable[[Dispatcher], Dispatcher]) -> Generator[None]:
        """Have another dispatcher run the tools for a while, made from the one that does: for tests."""
        own, self._dispatcher = self._dispatcher, intercept(self._dispatcher)
        try:
            yield
        finally:
            self._dispatcher = own

    # An ordinary call -------------------------------------------------------------------------------------------------

    def _plan_of(self, call: CallRequest, context: CallContext) -> CallPlan | None:
        """The plan of a call that may be ordinary; null for any other."""
        if self.caps is not None and context.starter is not None:
            return None
        try:
            version = call.version or context.policy.versions.get(call.name)
            tool = self._tools.find(context.principal.realm, call.name, version)
        except InvalidInput:
            return None
        return None if tool is None else self._plans.of(tool)

    def _begin(self, made: OrdinaryCall, plan: CallPlan) -> ToolEnvelope | Awaitable[ToolEnvelope]:
        """Let the tool run until it waits for something: its envelope if it ends before, else what is still to await.

        No time-out is set for a tool that does not wait: nothing could interrupt it.
        """
        call = made.call
        dispatch = Dispatch(
            plan.tool, made.copy_arguments(), _NO_SECRETS, made.idempotency_key, call.position, 1, made.context,
            call.timeout_s, made.call_id,
        )  # fmt: skip
        work = self._dispatcher.dispatch(dispatch)
        try:
            begun: Awaitable[Outcome] = resume(work, work.send(None))
        except StopIteration as end:
            executed, outcome = self._monotonic(), end.value
            envelope = plan.envelope(made, outcome, self._clock, executed)
            return envelope if envelope is not None else self._finish_begun(made, plan, outcome)
        except BaseException as crash:  # noqa: BLE001 - raised again where the failures of attempts are judged
            begun = fail(crash)
        builder = made.builder(plan.tool, self._clock)
        return self._settle(builder, self._go_on(builder, plan, begun))

    def _finish_begun(
        self, made: OrdinaryCall, plan: CallPlan, outcome: Outcome
    ) -> ToolEnvelope | Awaitable[ToolEnvelope]:
        """The envelope of a first attempt that never waited and has brought more than an output, or an unusual one."""
        builder = made.builder(plan.tool, self._clock)
        builder.attempts, builder.tainted = 1, plan.untrusted
        builder.lap("execute")
        envelope = plan.envelope_later(builder, outcome)
        return envelope or self._settle(builder, self._finish(builder, plan.tool, outcome, plan.output))

    async def _go_on(self, builder: EnvelopeBuilder, plan: CallPlan, begun: Awaitable[Outcome]) -> ToolEnvelope:
        """The rest of an ordinary call whose first attempt waits for something, or has failed."""
        tool = plan.tool
        try:
            outcome = await self._dispatch(builder, tool, _NO_SECRETS, begun)
        except CallFailed as failure:
            if not _uses_budget(tool.definition, builder, failure):
                builder.context.budget.return_tool_call()
            return await self._fall_back(builder, tool, failure, plan.output)
        envelope = plan.envelope_later(builder, outcome)
        return envelope if envelope is not None else await self._finish(builder, tool, outcome, plan.output)

    # Before anything runs ---------------------------------------------------------------------------------------------

    def _resolve(self, call: CallRequest, context: CallContext) -> ToolRevision:
        version = call.version or context.policy.versions.get(call.name)
        try:
            tool = self._tools.find(context.principal.realm, call.name, version)
        except InvalidInput as problem:
            message = f"there is no tool {_short_ref(call.name, version)!r}: {problem}"
            raise Denied(error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_FOUND, message)) from problem
        if tool is not None:
            return tool
        allowed = sorted(context.policy.allowed or ())
        hint = f"; the tools are: {', '.join(allowed[:20])}" if allowed else ""
        message = f"there is no tool {_short_ref(call.name, version)!r}{hint}"
        raise Denied(error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_FOUND, message))

    def _guard(self, builder: EnvelopeBuilder, tool: ToolRevision) -> GuardDecision:
        context = builder.context
        decision = decide(tool, context.policy, context.budget, builder.call.position, self._take_call)
        builder.lap("policy")
        if decision.outcome == "deny":
            raise denial(decision)
        return decision

    def _permit(self, builder: EnvelopeBuilder, tool: ToolRevision) -> None:
        denied = permit(tool, as_of_now(builder.context.principal, self._accounts))
        builder.lap("policy")
        if denied is not None:
            raise denial(denied)

    def _apply_guardrails(self, builder: EnvelopeBuilder, tool: ToolRevision, decision: GuardDecision) -> GuardDecision:
        """The decision with what the guardrails say of the arguments, which may have parts replaced."""
        context = builder.context
        if not context.policy.guardrails:
            return decision
        screening = screen_arguments(context, cast("JsonObject", builder.input))
        if screening.decision is not None:
            builder.set_arguments(screening.value)
            builder.approved_input = builder.approved_input and builder.input
            self._validate(builder, tool)
        decision = apply_guardrails(self.guardrails, context, tool, builder.input, decision, screening.decision)
        builder.lap("policy")
        return decision

    def _validate(self, builder: EnvelopeBuilder, tool: ToolRevision) -> ToolSchemas:
        arguments = builder.input
        if not isinstance(arguments, dict):
            why = f", and these are not JSON: {builder.not_json}" if builder.not_json else ""
            message = f"the arguments of {tool.name!r} must be one JSON object{why}; send it again, complete"
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INVALID_ARGUMENTS_JSON, message))
        narrowed = builder.context.policy.narrowed.get(tool.name)
        try:
            schemas = self._schemas.of(tool)
            filled, text = cast("JsonObject", arguments), builder.text
            if schemas.input.has_defaults:
                filled, text = plain_with_text(schemas.input.with_defaults(filled))
            problems = compile_schema(narrowed).problems(filled) if narrowed is not None else ()
        except InvalidInput as problem:
            message = f"the arguments of {tool.name!r} cannot be checked, because a schema is not usable: {problem}"
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)) from problem
        problems = problems or schemas.input.problems(filled)
        if problems:
            raise CallFailed(_invalid(tool, problems))
        builder.accept(filled, text)
        builder.lap("validate")
        return schemas

    async def _confirm(self, builder: EnvelopeBuilder, tool: ToolRevision, asks: GuardDecision) -> None:
        """Ask a person; the arguments are judged anew if the person edited them."""
        edited = await confirm(builder, request_of(builder, tool, asks, self._clock))
        if edited is None:
            return
        builder.set_arguments(edited)
        builder.approved_input = builder.input
        self._validate(builder, tool)
        self._apply_guardrails(builder, tool, asks)

    def _envelope_from_cache(self, builder: EnvelopeBuilder, tool: ToolRevision, kept: JsonObject) -> ToolEnvelope:
        """What an equal call has brought before, as this run's guardrails let it pass."""
        output, metadata = screen_output(builder, kept["output"], kept["metadata"])
        return seal_cached(builder, tool, {**kept, "output": output, "metadata": metadata})

    async def _limit_rate(self, builder: EnvelopeBuilder, tool: ToolRevision) -> None:
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
                # journals have these words, and a replay compares them; docs/secrets.md says what releases a variable
                message = f"tool {definition.name!r} needs {secret.reference}, which is not set or not released"
                raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
        return found

    def _intent(self, builder: EnvelopeBuilder, tool: ToolRevision, decision: GuardDecision) -> CallStarted:
        definition = tool.definition
        return CallStarted(
            position=builder.call.position,
            call_id=builder.call_id,
            name=definition.name,
            version=definition.version,
            content_hash=tool.content_hash,
            side_effects=definition.side_effects,
            input=builder.input,
            idempotency_key=builder.idempotency_key,
            decision=decision,
            attempt=builder.context.attempt,
        )

    # The effect and after ---------------------------------------------------------------------------------------------

    async def _dispatch(
        self,
        builder: EnvelopeBuilder,
        tool: ToolRevision,
        auth: Mapping[str, str],
        begun: Awaitable[Outcome] | None = None,
    ) -> Outcome:
        """What the tool brings, within its time; its first attempt may have begun at the last lap."""
        definition = tool.definition
        builder.tainted = is_untrusted(definition)
        failed = builder.context.journal.find_failed_call(builder.call.position)
        if failed is not None:
            builder.attempts += 1
            builder.tainted |= failed.tainted
            raise failure_of(failed)
        limit = time_limit(definition, builder.call)
        try:
            async with self._deadline(limit.seconds if begun is None else limit.seconds - builder.since_lap):
                return await self._attempt_until_done(builder, tool, auth, begun)
        except TimeoutError:
            raise CallFailed(with_author_message(definition, time_out(definition, limit), None)) from None
        except CallFailed as failure:
            failure.error = with_author_message(definition, failure.error, failure.http_status)
            builder.tainted |= failure.tainted
            screen_failure(builder, failure)
            raise
        finally:
            builder.lap("execute")

    async def _attempt_until_done(
        self,
        builder: EnvelopeBuilder,
        tool: ToolRevision,
        auth: Mapping[str, str],
        begun: Awaitable[Outcome] | None,
    ) -> Outcome:
        while True:
            builder.attempts += 1
            if begun is None:
                begun = self._dispatcher.dispatch(_dispatch_of(builder, tool, auth, builder.attempts))
            try:
                return await _catch_failures(begun, tool.definition, builder)
            except CallFailed as failure:
                begun = None
                wait = wait_before_retry(tool.definition, failure, builder.attempts)
                if wait is None:
                    raise
                builder.add_failed_attempt(failure)
            await self._clock.sleep(wait)
            if tool.definition.side_effects == "writes":
                await builder.context.journal.fence()

    async def _fall_back(
        self,
        builder: EnvelopeBuilder,
        tool: ToolRevision,
        failure: CallFailed,
        promised: SchemaValidator | None,
    ) -> ToolEnvelope:
        """Call what stands in for a tool that has failed; its output counts."""
        definition, context = tool.definition, builder.context
        ref = fallback_of(definition, failure)
        if ref is None:
            raise failure
        builder.add_secrets(failure.secrets)
        record = record_of(tool, failure, builder.redact_error(failure.error))
        try:
            fallback = find_fallback(ref, tool, self._tools, context)
            spawned = context.journal.spawn(
                builder.call.position,
                fallback,
                builder.input,
                instead_of=record,
                timeout_s=builder.call.timeout_s,
            )
            result = await _catch_failures(spawned, fallback.definition, builder)
        except (CallFailed, InvalidInput) as problem:
            raise with_fallback_problem(failure, ref, str(problem)) from problem
        finally:
            builder.lap("execute")
        builder.cost_usd = total_cost(record, result)
        builder.tainted |= result.tainted
        metadata = fallback_metadata(record, fallback, result)
        if result.error is not None:
            raise with_fallback_problem(failure, ref, result.error.message, metadata, effect=result.error.effect)
        builder.acted = result.wrote is not False
        output = take(definition, result.output, builder.redactor)
        metadata = check_output(definition, promised, output, metadata)
        return await self._pack(builder, tool, output, metadata, attachments=result.attachments)

    async def _finish(
        self, builder: EnvelopeBuilder, tool: ToolRevision, outcome: Outcome, promised: SchemaValidator | None
    ) -> ToolEnvelope:
        definition = tool.definition
        builder.acted = outcome.metadata.get("wrote", definition.runs_on == "server")
        builder.cost_usd = outcome.cost_usd if outcome.cost_usd is not None else definition.cost_usd_per_call
        builder.add_secrets(outcome.secrets)
        builder.tainted |= outcome.tainted
        result = take(definition, outcome.output, builder.redactor)
        cost = cost_from_output(definition, result)
        self._charge(builder, definition, cost)
        await capping.add(self.caps, builder, definition, cost)
        output, metadata = select_output(definition, result), outcome.metadata
        for_client = definition.runs_on == "client"
        if not for_client:
            metadata = check_output(definition, promised, output, metadata)
        envelope = await self._pack(
            builder,
            tool,
            output,
            metadata,
            http_status=outcome.http_status,
            attachments=outcome.attachments,
            for_client=for_client,
        )
        return await self._hand_off(builder, tool, envelope, promised) if for_client else envelope

    async def _pack_failure(self, builder: EnvelopeBuilder, failure: CallFailed) -> ToolEnvelope:
        """The envelope of a failed call, with what a nested run had done."""
        fitted, tool = FittedOutput(None), builder.tool
        if tool is not None and failure.partial is not None:
            partial, owner = take(tool.definition, failure.partial, builder.redactor), builder.context.principal.id
            limit = tool.definition.max_output_bytes
            fitted = await fit(partial, limit, self._blob_sink, realm=tool.realm, made_by=owner)
        return builder.build(
            "error",
            partial=fitted.output,
            error=failure.error,
            http_status=failure.http_status,
            metadata=with_warning(failure.metadata, fitted.warning) if fitted.warning else failure.metadata,
            attachments=fitted.attachments,
            truncated=fitted.truncated,
        )

    def _charge(self, builder: EnvelopeBuilder, definition: ToolDefinition, cost: Decimal | None) -> None:
        """Put what a call says that it cost in the place of the price that was reserved for it."""
        if cost is not None:
            builder.context.budget.add_cost(cost - (definition.cost_usd_per_call or Decimal(0)))
            builder.cost_usd = cost

    async def _pack(
        self,
        builder: EnvelopeBuilder,
        tool: ToolRevision,
        output: Json,
        metadata: JsonObject,
        *,
        http_status: int | None = None,
        attachments: tuple[Attachment, ...] = (),
        for_client: bool = False,
    ) -> ToolEnvelope:
        output, metadata = screen_output(builder, output, metadata)
        limit, owner = tool.definition.max_output_bytes, builder.context.principal.id
        fitted = await fit(output, limit, self._blob_sink, realm=tool.realm, made_by=owner)
        return builder.build(
            "success",
            output=fitted.output,
            http_status=http_status,
            metadata=with_warning(metadata, fitted.warning) if fitted.warning else metadata,
            attachments=(*attachments, *fitted.attachments),
            truncated=fitted.truncated,
            for_client=for_client,
        )

    async def _take_up(
        self, builder: EnvelopeBuilder, tool: ToolRevision, prepared: ToolEnvelope, promised: SchemaValidator | None
    ) -> ToolEnvelope:
        """Go on with a call that was handed to a client in an earlier life of the run."""
        builder.continue_prepared(prepared)
        builder.tainted = is_untrusted(tool.definition)
        self._charge(builder, tool.definition, prepared.cost_usd)
        envelope = await self._hand_off(builder, tool, prepared, promised)
        return await self._results.keep(self._results.key(builder, tool), builder, tool, envelope)

    async def _hand_off(
        self, builder: EnvelopeBuilder, tool: ToolRevision, prepared: ToolEnvelope, promised: SchemaValidator | None
    ) -> ToolEnvelope:
        """What a client makes of a prepared call. The tool's output is what the client brings."""
        builder.handed_over = True
        result = await builder.context.journal.hand_off(prepared)
        builder.lap("wait")
        builder.tainted |= result.tainted
        if result.error is not None:
            raise CallFailed(with_reason(result.error), metadata=result.metadata)
        output = take(tool.definition, result.output, builder.redactor)
        metadata = check_output(tool.definition, promised, output, result.metadata)
        return await self._pack(builder, tool, output, metadata)


def _dispatch_of(builder: EnvelopeBuilder, tool: ToolRevision, auth: Mapping[str, str], attempt: int) -> Dispatch:
    call = builder.call
    return Dispatch(
        tool=tool,
        input=builder.copy_arguments(),
        auth=auth,
        idempotency_key=builder.idempotency_key,
        position=call.position,
        attempt=attempt,
        context=builder.context,
        timeout_s=call.timeout_s,
        call_id=builder.call_id,
    )


def _uses_budget(tool: ToolDefinition, builder: EnvelopeBuilder, failure: CallFailed) -> bool:
    """Whether a failed call counts: not if nothing of it was sent, which it then says, and nothing stands in for it."""
    if was_sent(failure, builder) or fallback_of(tool, failure) is not None:
        return True
    failure.metadata = {**failure.metadata, "sent": False}
    return False


def _short_ref(name: str, version: str | None) -> str:
    return f"{name[:_MOST_SHOWN]}@{version[:_MOST_SHOWN]}" if version else name[:_MOST_SHOWN]


def _invalid(tool: ToolRevision, problems: Sequence[SchemaProblem]) -> ToolError:
    listed = "; ".join(map(str, problems[:5]))
    message = f"the arguments of {tool.name!r} are not valid: {listed}. Correct them and call again"
    found = [problem.as_json() for problem in problems]
    return error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message, problems=found)


async def _catch_failures(work: Awaitable[T], tool: ToolDefinition, builder: EnvelopeBuilder) -> T:
    """What a tool brings; whatever it raises is its failure, whose traceback is kept."""
    try:
        return await work
    except (CallFailed, Fenced, StoreUnavailable):
        raise
    except asyncio.CancelledError as crash:
        if _is_cancelled():
            raise
        _keep_traceback(crash, builder)
        raise crash_failure(tool, crash) from crash
    except BrokenOff as broken:
        crash = cast("BaseException", broken.__cause__)
        _keep_traceback(crash, builder)
        failure = crash_failure(tool, crash)
        failure.partial = broken.partial
        raise failure from crash
    except (Exception, SystemExit) as crash:
        _keep_traceback(crash, builder)
        raise crash_failure(tool, crash) from crash


def _keep_traceback(crash: BaseException, builder: EnvelopeBuilder) -> None:
    from toolcrib.core.executor.tracebacks import keep_traceback  # noqa: PLC0415 - rarely needed

    keep_traceback(crash, builder)


def _is_cancelled() -> bool:
    """Whether the cancellation that was caught is ours, and not that of something which the tool had waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0

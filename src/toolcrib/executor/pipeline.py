"""The one pipeline that runs tools.

resolve, guard, validate, permit, confirm, rate limit, cache, secrets, intent, dispatch with retries, response
mapping, output check, redaction, truncation, envelope. Whatever kind a tool is and whichever surface asked, it goes
through here, so a denied call is denied everywhere. A tool's failure is an envelope; nothing but cancellation and
suspension leaves `execute` otherwise.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from toolcrib.contracts import (
    ApprovalRequested,
    Attachment,
    CallStarted,
    ErrorCode,
    GuardDecision,
    JsonObject,
    Reason,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    cache_key,
    content_hash,
    idempotency_key,
)
from toolcrib.executor.attempts import explained, wait_before_retry
from toolcrib.executor.output import check_output, fit, select_output
from toolcrib.executor.ports import (
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
from toolcrib.executor.rates import Rates
from toolcrib.executor.receipt import Receipt, error
from toolcrib.policy import decide, permit
from toolcrib.registry import Problem, compile_schema
from toolcrib.secrets import Redactor


class Denied(CallFailed):
    """The call was refused before anything ran."""


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
    ) -> None:
        self._tools = tools
        self._dispatcher = dispatcher
        self._secrets = secrets
        self._results = results
        self._attic = attic
        self._rates = rates
        self._clock = clock

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
            return receipt.seal(
                "error", error=failure.error, http_status=failure.http_status, metadata=failure.metadata
            )

    def admit(self, call: ToolCall, context: CallContext) -> ToolRevision:
        """Resolve, guard, validate and permit without running: the door for what becomes a run of its own.

        Raises:
            CallFailed: The call would not run; its error says why.
        """
        receipt = Receipt(call, context, self._clock)
        tool = receipt.tool = self._resolve(call, context)
        self._guard(receipt, tool)
        context.budget.return_tool_call()
        self._validate(receipt, tool)
        self._permit(receipt, tool)
        return tool

    async def _run(self, receipt: Receipt, tool: ToolRevision) -> ToolEnvelope:
        context, definition = receipt.context, tool.definition
        decision = self._guard(receipt, tool)
        taken = True
        try:
            arguments = self._validate(receipt, tool)
            self._permit(receipt, tool)
            if decision.outcome == "ask":
                arguments = await self._confirm(receipt, tool)
            if context.dry_run and definition.side_effects == "writes":
                return receipt.seal("skipped", metadata={"dry_run": True})
            self._limit_rate(receipt, tool)
            key = self._cache_key(receipt, tool)
            cached = await self._results.get(key, now=self._clock.now()) if key else None
            if cached is not None:
                receipt.spent("policy")
                return _from_cache(receipt, cached)
            auth = self._resolve_secrets(definition, context)
            await context.journal.intend(self._intent(receipt, tool, decision))
            receipt.spent("policy")
            taken = False
            outcome = await self._dispatch(receipt, tool, arguments, auth)
        finally:
            if taken:
                context.budget.return_tool_call()
        envelope = await self._finish(receipt, tool, outcome, auth)
        if key and envelope.ok and not envelope.truncated:
            await self._remember(key, tool, envelope, context)
        return envelope

    # Before anything runs ---------------------------------------------------------------------------------------------

    def _resolve(self, call: ToolCall, context: CallContext) -> ToolRevision:
        version = call.version or context.policy.versions.get(call.name)
        tool = self._tools.find(context.principal.realm, call.name, version)
        if tool is not None:
            return tool
        wanted = f"{call.name}@{version}" if version else call.name
        allowed = sorted(context.policy.allowed or ())
        hint = f"; the tools are: {', '.join(allowed[:20])}" if allowed else ""
        message = f"there is no tool {wanted!r}{hint}"
        raise Denied(error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_FOUND, message))

    def _guard(self, receipt: Receipt, tool: ToolRevision) -> GuardDecision:
        decision = decide(tool, receipt.context.policy, receipt.context.budget)
        receipt.spent("policy")
        if decision.outcome == "deny":
            raise _denial(decision)
        return decision

    def _permit(self, receipt: Receipt, tool: ToolRevision) -> None:
        denied = permit(tool, receipt.context.principal)
        receipt.spent("policy")
        if denied is not None:
            raise _denial(denied)

    def _validate(self, receipt: Receipt, tool: ToolRevision) -> JsonObject:
        arguments = receipt.input
        if not isinstance(arguments, dict):
            message = f"the arguments of {tool.name!r} must be one JSON object; send it again, complete"
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INVALID_ARGUMENTS_JSON, message))
        schema = compile_schema(tool.definition.input_schema)
        filled = schema.with_defaults(cast("JsonObject", arguments))
        problems = list(schema.problems(filled))
        narrowed = receipt.context.policy.narrowed.get(tool.name)
        if narrowed is not None:
            problems = list(compile_schema(narrowed).problems(filled)) or problems
        if problems:
            raise CallFailed(_invalid(tool, problems))
        receipt.accept(filled)
        receipt.spent("validate")
        return filled

    async def _confirm(self, receipt: Receipt, tool: ToolRevision) -> JsonObject:
        shown = content_hash(receipt.input)
        request = ApprovalRequested(
            position=receipt.call.position,
            call_id=receipt.call_id,
            name=tool.name,
            version=tool.version,
            input=receipt.input,
            arguments_hash=shown,
            content_hash=tool.content_hash,
            message=f"{tool.definition.title or tool.name} {tool.definition.side_effects}; confirm the arguments",
        )
        answer = await receipt.context.journal.confirm(request)
        receipt.spent("wait")
        if answer is None:
            raise Denied(error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_EXPIRED, "nobody approved the call in time"))
        if not answer.approved:
            why = f": {answer.reason}" if answer.reason else ""
            raise Denied(error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_REJECTED, f"a person rejected the call{why}"))
        if answer.arguments_hash != shown or answer.content_hash != tool.content_hash:
            message = "the approval is for other arguments or another revision of the tool; ask again"
            raise Denied(error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_REJECTED, message))
        if answer.edited_input is None:
            return receipt.input
        receipt.accept(answer.edited_input)
        receipt.approved_input = answer.edited_input
        return self._validate(receipt, tool)

    def _limit_rate(self, receipt: Receipt, tool: ToolRevision) -> None:
        limit = tool.definition.rate_limit
        if limit is None:
            return
        wait = self._rates.take(f"{tool.realm}/{tool.name}", limit, now=self._clock.monotonic())
        if wait is not None:
            message = f"tool {tool.name!r} may run {limit.count} times in {limit.per_s:g} s; wait {wait:.1f} s"
            refused = error(ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED, message)
            raise CallFailed(refused.model_copy(update={"retry_after_s": wait}))

    def _cache_key(self, receipt: Receipt, tool: ToolRevision) -> str | None:
        definition = tool.definition
        if definition.cache == "none" or definition.side_effects == "writes":
            return None
        scope = receipt.context.principal.id if definition.secrets else ""
        return cache_key(tool.realm, scope, tool.name, tool.content_hash, receipt.arguments)

    def _resolve_secrets(self, definition: ToolDefinition, context: CallContext) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for secret in definition.secrets:
            value = self._secrets.resolve(secret.reference, context.principal)
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
            idempotency_key=idempotency_key(receipt.context.run_id, receipt.call.position),
            decision=decision,
            attempt=receipt.context.attempt,
        )

    # The effect and after ---------------------------------------------------------------------------------------------

    async def _dispatch(
        self, receipt: Receipt, tool: ToolRevision, arguments: JsonObject, auth: Mapping[str, str]
    ) -> Outcome:
        definition = tool.definition
        redactor = Redactor(auth.values())
        try:
            async with asyncio.timeout(definition.timeout_s):
                return await self._attempt_until_done(receipt, tool, arguments, auth)
        except TimeoutError:
            message = f"tool {tool.name!r} did not end within timeout_s={definition.timeout_s:g}; the effect is unknown"
            raise CallFailed(error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, message)) from None
        except CallFailed as failure:
            failure.error = _redacted(explained(definition, failure.error, failure.http_status), redactor)
            failure.metadata = redactor.json(failure.metadata)
            raise
        finally:
            receipt.spent("execute")

    async def _attempt_until_done(
        self, receipt: Receipt, tool: ToolRevision, arguments: JsonObject, auth: Mapping[str, str]
    ) -> Outcome:
        key = idempotency_key(receipt.context.run_id, receipt.call.position)
        while True:
            receipt.attempts += 1
            dispatch = Dispatch(
                tool=tool,
                input=arguments,
                auth=auth,
                idempotency_key=key,
                position=receipt.call.position,
                attempt=receipt.attempts,
                context=receipt.context,
            )
            try:
                return await self._attempt(dispatch)
            except CallFailed as failure:
                wait = wait_before_retry(tool.definition, failure.error, failure.http_status, receipt.attempts)
                if wait is None:
                    raise
            await self._clock.sleep(wait)

    async def _attempt(self, dispatch: Dispatch) -> Outcome:
        try:
            return await self._dispatcher.dispatch(dispatch)
        except (CallFailed, TimeoutError):
            raise
        except Exception as crash:
            name = dispatch.tool.name
            message = f"tool {name!r} raised {type(crash).__name__}: {str(crash)[:500]}"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, message)) from crash

    async def _finish(
        self, receipt: Receipt, tool: ToolRevision, outcome: Outcome, auth: Mapping[str, str]
    ) -> ToolEnvelope:
        definition, context = tool.definition, receipt.context
        redactor = Redactor((*auth.values(), *outcome.secrets))
        output = redactor.json(select_output(definition, outcome.output))
        metadata = check_output(definition, output, redactor.json(outcome.metadata))
        output, whole = await fit(
            output, definition.max_output_bytes, self._attic, realm=tool.realm, made_by=context.principal.id
        )
        cost = outcome.cost_usd if outcome.cost_usd is not None else definition.cost_usd_per_call
        if definition.cost_usd_per_call is not None:
            context.budget.add_cost(definition.cost_usd_per_call)
        for_client = definition.runs_on == "client"
        envelope = receipt.seal(
            "success",
            output=output,
            http_status=outcome.http_status,
            metadata=metadata,
            attachments=(*outcome.attachments, *whole),
            cost_usd=cost,
            truncated=bool(whole),
            for_client=for_client,
        )
        return await self._hand_off(receipt, envelope) if for_client else envelope

    async def _hand_off(self, receipt: Receipt, prepared: ToolEnvelope) -> ToolEnvelope:
        result = await receipt.context.journal.hand_off(prepared)
        receipt.spent("wait")
        return receipt.seal(
            "success" if result.error is None else "error",
            output=result.output if result.error is None else None,
            error=result.error,
            metadata=result.metadata,
            cost_usd=prepared.cost_usd,
        )

    async def _remember(self, key: str, tool: ToolRevision, envelope: ToolEnvelope, context: CallContext) -> None:
        lifetime = tool.definition.cache_ttl_s
        expires = None if lifetime is None else self._clock.now() + timedelta(seconds=lifetime)
        value = envelope.model_dump(mode="json", include={"output", "http_status", "metadata", "attachments"})
        await self._results.put(key, value, realm=tool.realm, made_by=context.principal.id, expires_at=expires)


def _denial(decision: GuardDecision) -> Denied:
    reason = decision.reason or Reason.TOOL_NOT_ALLOWED
    message = decision.message or decision.rule
    return Denied(error(ErrorCode.POLICY_DENIED, reason, message, rule=decision.rule, inputs=decision.inputs))


def _invalid(tool: ToolRevision, problems: list[Problem]) -> ToolError:
    listed = "; ".join(map(str, problems[:5]))
    message = f"the arguments of {tool.name!r} are not valid: {listed}. Correct them and call again"
    found = [problem.as_json() for problem in problems]
    return error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message, problems=found)


def _redacted(failure: ToolError, redactor: Redactor) -> ToolError:
    if not redactor:
        return failure
    return failure.model_copy(
        update={"message": redactor.text(failure.message), "details": redactor.json(failure.details)}
    )


def _from_cache(receipt: Receipt, stored: JsonObject) -> ToolEnvelope:
    return receipt.seal(
        "success",
        output=stored["output"],
        http_status=stored["http_status"],
        metadata=stored["metadata"],
        attachments=tuple(Attachment.model_validate(item) for item in stored["attachments"]),
        cached=True,
    )

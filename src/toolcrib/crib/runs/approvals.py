"""The inbox of a crib: all calls that wait for an approval, with previews, and the decisions on them.

The inbox contains calls of nested runs and of runs in other processes. A decision is a signal in the journal: a
process that serves the store resumes the run and its parents. A preview shows what an approved call would do, without
doing it.

Example:
    await crib.invoke("send_offer", {"deal": "d1"})
    [waiting] = (await crib.approvals.page()).items
    ann = Principal(id="ann", grants=("ai://approvals/*/write",))
    await crib.acting_as(ann).approvals.decide(waiting.approval_id, approve=True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.contracts import (
    CLOCK,
    Approval,
    ApprovalPage,
    ApprovalPreview,
    ApprovalRequested,
    ApprovalStatus,
    ApprovalView,
    Conflict,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    Signal,
    ToolRevision,
    approval_id,
    approval_signal,
    idempotency_key,
)
from toolcrib.core.executor.envelope import plain
from toolcrib.core.policy import check_approver, check_grant, may_see_approval, visible_approvals
from toolcrib.core.registry import Providers, compile_schema
from toolcrib.core.runs import decision_on, waiting_approvals, waiting_at
from toolcrib.crib.container.access import Actor, participants_of, validate_output
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.tools.resources import RESOURCES, ResourceQuery, stored_page
from toolcrib.infrastructure.queries.grammar import Either, Every, equal
from toolcrib.infrastructure.store.ports.records import no_approval
from toolcrib.kinds.dispatch import preview_call


def preview_of(approval: Approval, tool: ToolRevision, providers: Providers) -> ApprovalPreview:
    """The preview of a call.

    Args:
        approval: The call.
        tool: The revision that was shown.
        providers: The systems that tools name.
    """
    definition = tool.definition
    arguments = cast("JsonObject", approval.input)
    shown = ApprovalPreview(
        title=definition.title or definition.name,
        description=definition.description,
        side_effects=definition.side_effects,
        arguments=arguments,
    )
    name = definition.provider
    details = preview_call(
        definition,
        arguments,
        provider=None if name is None else providers.find(tool.realm, name),
        idempotency_key=idempotency_key(approval.run_id, approval.position),
    )
    return shown.model_copy(update=details)


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A person's answer."""

    approve: bool
    edited_input: JsonObject | None = None
    """Arguments to run with instead of those that were shown."""
    reason: str | None = None
    allow_self: bool = False
    happened: bool | None = None
    """To the question whether a call took effect: that it did, or that it is to be made once more."""
    output: Json = None
    """The output of the call that took effect."""


class Approvals:
    """What people do with calls that wait for them.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._store = parts.outside.store
        self._clock = parts.outside.clock
        self._engine = parts.engine
        self._registry = parts.registry
        self._providers = parts.providers
        self._actor = actor

    async def page(
        self,
        *,
        status: ApprovalStatus | None = "waiting",
        tool: str | None = None,
        run_id: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> ApprovalPage:
        """Approvals, oldest first: of a principal those that it may see.

        Args:
            status: Null for all.
            tool: Name of the tool that waits.
            run_id: The run that makes the call, or the outermost one above it.
            filter: What else is true of them, by the grammar of all queries.
            sort: Another order, such as `expires_at`.
            after: Where the page before ended.
            limit: At most so many.

        Raises:
            NotFound: There is no approval `after` that the principal may see.
            InvalidInput: The filter or the sort is not valid; the message lists the fields.

        Example:
            await crib.invoke("send_offer", {"deal": "d1"})
            for approval in (await crib.approvals.page(tool="send_offer")).items:
                print(approval.approval_id, approval.input)
        """
        who = await self._actor.authorize()
        query = ResourceQuery[Approval](RESOURCES["approvals"], filter, sort, now=self._clock.now())
        given = {"status": status, "tool": tool}
        where = [equal(name, value) for name, value in given.items() if value is not None]
        where += [] if run_id is None else [Either((equal("run_id", run_id), equal("root_run_id", run_id)))]
        where += [] if self._actor.caller is None else [visible_approvals(self._actor.caller)]
        page = await stored_page(self._store.approvals, who.realm, query, Every(tuple(where)), after=after, limit=limit)
        return ApprovalPage(items=tuple(page.items), next=page.next)

    async def get(self, approval_id: str) -> ApprovalView:
        """An approval, with what would happen.

        Raises:
            NotFound: No approval that the principal may see has this id.

        Example:
            await crib.invoke("send_offer", {"deal": "d1"})
            [waiting] = (await crib.approvals.page()).items
            view = await crib.approvals.get(waiting.approval_id)
            print(view.preview.title, view.preview.arguments)
        """
        who = await self._actor.authorize()
        approval = await self._store.approvals.get(who.realm, approval_id)
        if not self._may_see(approval):
            raise no_approval(approval_id)
        try:
            tool = await self._registry.get_revision(approval.realm, approval.content_hash)
        except NotFound:
            return ApprovalView(approval=approval)
        return ApprovalView(approval=approval, preview=preview_of(approval, tool, self._providers))

    async def decide(
        self,
        approval_id: str,
        *,
        approve: bool,
        edited_input: JsonObject | None = None,
        reason: str | None = None,
        allow_self: bool = False,
        happened: bool | None = None,
        output: Json = None,
    ) -> Approval:
        """Approve a call as it is or with other arguments, or reject it; the first decision counts.

        The application itself is responsible for asking a person, and needs no grant. If the question is whether a call
        took effect (`question: outcome`), who approves says what `happened`, and who
        rejects gives it up: its error says then that the outcome is unknown.

        Args:
            approval_id: The approval.
            approve: Whether the call may run.
            edited_input: Arguments to run with instead of those that were shown.
            reason: Why, for the record; who was rejected reads it.
            allow_self: Whether who has a part in the run may decide.
            happened: Whether the call took effect; else it is made once more, with the same idempotency key.
            output: The output of the call that took effect; it must match the output schema.

        Returns:
            The approval as it is now.

        Raises:
            NotFound: The id is unknown.
            PermissionDenied: The principal may not decide on it.
            InvalidInput: The arguments do not fit the schema; the request stays open.
            Conflict: It was answered or withdrawn, or its time is over.

        Example:
            await crib.invoke("send_offer", {"deal": "d1"})
            [waiting] = (await crib.approvals.page()).items
            ann = Principal(id="ann", grants=("ai://approvals/*/write",))
            await crib.acting_as(ann).approvals.decide(waiting.approval_id, approve=True)
            await crib.resume(waiting.run_id)
        """
        who = await self._actor.authorize()
        approval = await self._store.approvals.get(who.realm, approval_id)
        answer = ApprovalAnswer(approve, edited_input, reason, allow_self, happened, output)
        counted = await self._answer(approval, answer, who.id)
        answered = await self._store.approvals.get(who.realm, approval_id)
        if not counted or answered.status not in ("approved", "edited", "rejected"):
            raise _conflict_for(answered)
        return answered

    async def of_run(self, run_id: str) -> Sequence[ApprovalRequested]:
        """Calls of a run that wait for a person, as its journal has them.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            waiting = await crib.invoke("send_offer", {"deal": "d1"})
            [request] = await crib.approvals.of_run(waiting.run_id)
            print(request.name, request.input)
        """
        await self._actor.authorize()
        await self._actor.check_run(self._store.journal, run_id, "read")
        return await self._waiting(run_id)

    async def decide_call(self, run_id: str, position: str, answer: ApprovalAnswer) -> bool:
        """Decide on the call at a position; false if it was decided before.

        Raises:
            Conflict: No call at this position waits for a person, or its time is over.
            PermissionDenied: The principal may not decide on it.
            InvalidInput: The arguments do not fit the schema; the request stays open.
        """
        await self._actor.authorize()
        waiting = {request.position: request for request in await self._waiting(run_id)}
        run = await self._store.journal.run(run_id)
        if self._actor.caller is not None and position not in waiting:  # who may not decide is not told what waits
            check_grant(self._actor.caller, run.request.tool_name)
        request = waiting_at(run_id, position, waiting, "approval")
        known = approval_id(run_id, approval_signal(position, request.number))
        who = await self._actor.authorize()
        return await self._answer(await self._store.approvals.get(run.realm, known), answer, who.id)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _may_see(self, approval: Approval) -> bool:
        caller = self._actor.caller
        return caller is None or may_see_approval(caller, approval)

    async def _waiting(self, run_id: str) -> Sequence[ApprovalRequested]:
        signals = await self._store.journal.signals(run_id)
        return waiting_approvals(await self._store.journal.events(run_id), signals.keys())

    async def _answer(self, approval: Approval, answer: ApprovalAnswer, by: str) -> bool:
        """Leave the answer for the run; false if there was one."""
        caller = self._actor.caller
        if caller is not None:
            involved = await participants_of(self._store.journal, approval.run_id)
            involved |= {approval.requested_by, approval.acting}
            check_approver(caller, approval, involved, allow_self=answer.allow_self)
        if approval.status != "waiting":
            raise _conflict_for(approval)
        if approval.expires_at is not None and self._clock.now() >= approval.expires_at:
            await self._leave(approval, {}, CLOCK)
            raise _conflict_for(await self._store.approvals.get(approval.realm, approval.approval_id))
        if answer.edited_input is not None:
            await self._check_edit(approval, answer.edited_input, approve=answer.approve)
        await self._check_outcome(approval, answer)
        decision = decision_on(
            approval,
            approve=answer.approve,
            edited_input=answer.edited_input,
            reason=answer.reason,
            happened=answer.happened,
            output=answer.output,
        )
        return await self._leave(approval, decision.model_dump(mode="json"), by)

    async def _leave(self, approval: Approval, payload: JsonObject, by: str) -> bool:
        signal = Signal(name=approval.signal, payload=payload, made_by=by, at=self._clock.now())
        return await self._engine.signal(approval.run_id, signal)

    async def _check_outcome(self, approval: Approval, answer: ApprovalAnswer) -> None:
        """Hold an answer against its question: whether a call took effect is asked of calls that were cut off only."""
        if approval.question == "permission" or not answer.approve:
            if answer.happened is not None or answer.output is not None:
                msg = f"what happened is not asked about {approval.tool!r} here; leave happened and output out"
                raise InvalidInput(msg)
            return
        if answer.happened is None:
            msg = (
                f"the question is whether the call of {approval.tool!r} took effect: say happened=true with its "
                "output, or happened=false to have it made once more; reject it if that is unknown"
            )
            raise InvalidInput(msg)
        if answer.edited_input is not None or (answer.output is not None and not answer.happened):
            msg = "a call that is made once more has its old arguments and no output yet; leave both out"
            raise InvalidInput(msg)
        if answer.happened:
            tool = await self._registry.get_revision(approval.realm, approval.content_hash)
            validate_output(tool, answer.output)

    async def _check_edit(self, approval: Approval, edited: JsonObject, *, approve: bool) -> None:
        if not approve:
            msg = "a rejected call has no arguments; leave edited_input out, or approve the call with it"
            raise InvalidInput(msg)
        tool = await self._registry.get_revision(approval.realm, approval.content_hash)
        schema = compile_schema(tool.definition.input_schema if approval.step is None else approval.narrowed or {})
        try:
            filled = schema.with_defaults(cast("JsonObject", plain(edited)))
        except InvalidInput as problem:
            msg = f"the edited arguments of {tool.name!r} are not JSON: {problem}. Correct them; the call still waits"
            raise InvalidInput(msg) from problem
        narrowed = schema if approval.narrowed is None else compile_schema(approval.narrowed)
        problems = narrowed.problems(filled) or schema.problems(filled)
        if problems:
            listed = "; ".join(map(str, problems[:5]))
            msg = f"the edited arguments of {tool.name!r} are not valid: {listed}. Correct them; the call still waits"
            raise InvalidInput(msg, [problem.as_json() for problem in problems])


def _conflict_for(approval: Approval) -> Conflict:
    """The error if a decision is no longer possible."""
    call = f"approval {approval.approval_id} of {approval.tool!r}"
    match approval.status:
        case "expired":
            return Conflict(f"{call} expired at {approval.expires_at}; the call is denied")
        case "cancelled":
            return Conflict(f"{call} was withdrawn: {approval.reason}; list the approvals for what waits now")
        case _:
            return Conflict(f"{call} is {approval.status} already, by {approval.decided_by!r}; the first answer counts")

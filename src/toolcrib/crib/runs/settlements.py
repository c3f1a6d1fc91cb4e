"""Settlements: a person's answer, after a run has ended, whether a call with an unknown outcome took effect.

    await crib.acting_as(ann).settlements.settle(run_id, "pay", happened=True, output={"id": "p_1"})
    await crib.instances.resume(run_id)          # continues with that output

The journal of the ended run does not change: a settlement is stored as a signal to the run. For runs that have not
ended, the inbox asks the same question (see `crib.approvals`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from toolcrib.contracts import CallFinished, Conflict, InvalidInput, Json, NotFound, Run, Signal
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.runs.trace import OutcomeTold, Settlement, settlement_signal
from toolcrib.core.policy import check_approver, check_grant
from toolcrib.core.runs import in_doubt
from toolcrib.crib.container.access import Actor, participants_of, validate_output
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.runs.rerun_links import Successors


class _Unsettled(NamedTuple):
    """The call that is asked about."""

    realm: str
    tool: str


class Settlements:
    """What is said of calls afterwards.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._journal = parts.outside.store.journal
        self._clock = parts.outside.clock
        self._registry = parts.registry
        self._successors = Successors(self._journal, parts.outside.clock)
        self._actor = actor

    async def settle(
        self,
        run_id: str,
        position: str,
        *,
        happened: bool,
        output: Json = None,
        reason: str | None = None,
        allow_self: bool = False,
    ) -> Settlement:
        """Record the outcome of a call whose result is unknown, in a run that has ended. The first answer counts.

        The application itself needs no grant: it is responsible for asking a person.

        A run that continues this one uses the answer: a call that took effect is not repeated and has the given output;
        what did not is made once more, with the same idempotency key.

        Args:
            run_id: The run that made the call.
            position: The position of the call in it, as the trace shows it.
            happened: Whether it took effect.
            output: The output of the call, if it took effect; it must match the output schema.
            reason: How that is known, for the record.
            allow_self: Whether who has a part in the run may say it.

        Raises:
            NotFound: There is no such run, or it has made no such call.
            PermissionDenied: The principal may not decide on calls of this tool.
            InvalidInput: The output is not what the tool promises, or belongs to a call that did not happen.
            Conflict: The run has not ended, or another one has taken it up; or the outcome of the call is known.

        Example:
            await crib.settlements.settle(run_id, "pay", happened=True, output={"id": "p_1"})
            instance = await crib.instances.resume(run_id)  # uses that output
        """
        who = await self._actor.authorize()
        run = await self._run(run_id, who.realm)
        envelope = await self._envelope(run, position)
        if self._actor.caller is not None:
            unsettled, involved = _Unsettled(run.realm, envelope.name), await participants_of(self._journal, run_id)
            check_approver(self._actor.caller, unsettled, involved, allow_self=allow_self)
        await self._check_open(run, envelope)
        if happened:
            tool = await self._registry.get_revision(run.realm, envelope.content_hash or "")
            output = validate_output(tool, output)
        elif output is not None:
            msg = f"a call of {envelope.name!r} that did not take effect has no output; leave output out"
            raise InvalidInput(msg)
        return await self._leave(run_id, position, OutcomeTold(happened=happened, output=output, reason=reason), who.id)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _run(self, run_id: str, realm: str) -> Run:
        try:
            run = await self._journal.run(run_id)
        except NotFound:
            run = None
        if run is None or run.realm != realm:
            raise NotFound(f"there is no run {run_id!r}; list the executions for the ids there are")
        return run

    async def _envelope(self, run: Run, position: str) -> ToolEnvelope:
        """The call's envelope in the run. Principals that may not decide do not learn which calls exist."""
        envelopes: Mapping[str, ToolEnvelope] = {
            entry.event.position: entry.event.envelope
            for entry in await self._journal.events(run.run_id)
            if isinstance(entry.event, CallFinished)
        }
        if position not in envelopes:
            if self._actor.caller is not None:
                check_grant(self._actor.caller, run.request.tool_name)
            advice = "its trace shows the positions of its calls" if run.ended else f"it is {run.status}"
            raise NotFound(f"run {run.run_id} has no outcome of a call at {position!r}; {advice}")
        return envelopes[position]

    async def _check_open(self, run: Run, envelope: ToolEnvelope) -> None:
        """Refuse an outcome that is known, or that would have no use any more."""
        call = f"the call of {envelope.name!r} at {envelope.position!r} of run {run.run_id}"
        if not run.ended:
            msg = f"{call} cannot be settled while the run is {run.status}; wait for its end, or cancel it"
            raise Conflict(msg)
        if not in_doubt(envelope.side_effects, envelope.error):
            raise Conflict(f"{call} is no question: its outcome is known, and is {envelope.status!r}")
        last = await self._successors.last(await self._outermost(run))
        if last.run_id != (run.request.root_run_id or run.run_id):
            msg = f"{call} was continued by {last.run_id}, which is {last.status}; look at the same call there"
            raise Conflict(msg)

    async def _outermost(self, run: Run) -> Run:
        root = run.request.root_run_id
        return run if root is None else await self._journal.run(root)

    async def _leave(self, run_id: str, position: str, outcome: OutcomeTold, by: str) -> Settlement:
        name, at = settlement_signal(position), self._clock.now()
        if not await self._journal.signal(run_id, Signal(name=name, payload=outcome.model_dump(), made_by=by, at=at)):
            before = (await self._journal.signals(run_id))[name]
            msg = f"the call at {position!r} of run {run_id} was settled by {before.made_by!r}; the first answer counts"
            raise Conflict(msg)
        return Settlement(**outcome.model_dump(), made_by=by, at=at)

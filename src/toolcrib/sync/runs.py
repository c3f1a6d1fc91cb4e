"""Synchronous forms of the classes of several modules.

`toolcrib.crib.runs.approvals`,
`toolcrib.crib.runs.forks`,
`toolcrib.crib.runs.ids`,
`toolcrib.crib.runs.retention`,
`toolcrib.crib.runs.settlements`,
`toolcrib.crib.runs.triggers`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from toolcrib.contracts import (
        Approval,
        ApprovalPage,
        ApprovalRequested,
        ApprovalStatus,
        ApprovalView,
        Json,
        JsonObject,
        Run,
        TriggerDefinition,
        TriggerStart,
        TriggerState,
    )
    from toolcrib.contracts.pruning_and_rehearsal import Pruned
    from toolcrib.contracts.runs.comparisons import RunDiff
    from toolcrib.contracts.runs.trace import Settlement
    from toolcrib.crib.runs.approvals import Approvals as AsynchronousApprovals
    from toolcrib.crib.runs.forks import Forks as AsynchronousForks
    from toolcrib.crib.runs.ids import IdKind
    from toolcrib.crib.runs.ids import Ids as AsynchronousIds
    from toolcrib.crib.runs.retention import Retention as AsynchronousRetention
    from toolcrib.crib.runs.settlements import Settlements as AsynchronousSettlements
    from toolcrib.crib.runs.triggers import Triggers as AsynchronousTriggers
    from toolcrib.infrastructure.store import Pruning


class Approvals(Facade):
    """What people do with calls that wait for them.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousApprovals, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._approvals = asynchronous

    def page(
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
            crib.invoke("send_offer", {"deal": "d1"})
            for approval in crib.approvals.page(tool="send_offer").items:
                print(approval.approval_id, approval.input)
        """
        return self._loop.run(
            self._approvals.page,
            status=status,
            tool=tool,
            run_id=run_id,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
        )

    def get(self, approval_id: str) -> ApprovalView:
        """An approval, with what would happen.

        Raises:
            NotFound: No approval that the principal may see has this id.

        Example:
            crib.invoke("send_offer", {"deal": "d1"})
            [waiting] = crib.approvals.page().items
            view = crib.approvals.get(waiting.approval_id)
            print(view.preview.title, view.preview.arguments)
        """
        return self._loop.run(self._approvals.get, approval_id)

    def decide(
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
            crib.invoke("send_offer", {"deal": "d1"})
            [waiting] = crib.approvals.page().items
            ann = Principal(id="ann", grants=("ai://approvals/*/write",))
            crib.acting_as(ann).approvals.decide(waiting.approval_id, approve=True)
            crib.resume(waiting.run_id)
        """
        return self._loop.run(
            self._approvals.decide,
            approval_id,
            approve=approve,
            edited_input=edited_input,
            reason=reason,
            allow_self=allow_self,
            happened=happened,
            output=output,
        )

    def of_run(self, run_id: str) -> Sequence[ApprovalRequested]:
        """Calls of a run that wait for a person, as its journal has them.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            waiting = crib.invoke("send_offer", {"deal": "d1"})
            [request] = crib.approvals.of_run(waiting.run_id)
            print(request.name, request.input)
        """
        return self._loop.run(self._approvals.of_run, run_id)


class Forks(Facade):
    """The forks of a crib.

    Args:
        parts: The parts of the crib.
        executions: The crib's executions, which know which runs a principal may read.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousForks, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._forks = asynchronous

    def fork(
        self,
        run_id: str,
        *,
        at: int | str | None = None,
        changes: Mapping[str, Json] | None = None,
        allow_writes: bool = False,
        anew: bool = False,
        wait: bool = True,
    ) -> Run:
        """Start a run with what another run knew at an event, and continue from there.

        What that run called and asked later is taken from it where it is the same; the rest runs.

        Args:
            run_id: The run; it may be active, wait or have ended, and may be a fork itself.
            at: Number of the last event that is known; `step:NAME` or `turn:N` for what was known before a step of a
                workflow or a turn of an agent; null for the beginning.
            changes: What is different, by name: `model`, `prompt`, `tool:NAME`, `policy`, `input.FIELD`,
                `temperature`… as `docs/forks.md` lists them.
            allow_writes: Make calls with side effects that are not in the recording; else they are skipped.
            anew: Reuse nothing of the recording after the event.
            wait: Drive it here until it ends or waits; else a serving engine does.

        Returns:
            The current state of the fork. A refused fork has ended, and contains the reason.

        Raises:
            NotFound: There is no such run, event, step or turn, or no such version of a tool.
            PermissionDenied: The run is another's, or the principal may not change what is to be changed.
            InvalidInput: A change is not known, or does not fit the run.

        Example:
            answer = desk("Which deals has Acme?")
            fork = crib.forks.fork(answer.run_id, at="turn:2", changes={"model": "openai:gpt-5"})
            print(fork.status, fork.output)
        """
        return self._loop.run(
            self._forks.fork, run_id, at=at, changes=changes, allow_writes=allow_writes, anew=anew, wait=wait
        )

    def compare(self, before: str, after: str) -> RunDiff:
        """How two runs differ, such as a run and its fork.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: One of them is another's, and the principal has no grant to read it.

        Example:
            answer = desk("Which deals has Acme?")
            fork = crib.forks.fork(answer.run_id, changes={"prompt": "Answer in one word."})
            diff = crib.forks.compare(answer.run_id, fork.run_id)
            print(diff.parting, diff.output)
        """
        return self._loop.run(self._forks.compare, before, after)


class Ids(Facade):
    """Ids of one realm, all of which the application may see.

    Args:
        open_store: Opens the store, if it is not open.
        realm: The realm.
        newest_instance: Reads the newest run of a workflow; a page of at most one.
    """

    def __init__(self, asynchronous: AsynchronousIds, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._ids = asynchronous

    def find(self, kind: IdKind, text: str) -> str:
        """The id that is meant.

        Args:
            kind: What the id names.
            text: The id, or its first characters, at least eight and as many as no other id has; or `latest`, for the
                newest run, instance or conversation, or for the only approval that waits.

        Returns:
            The id; the text itself if nothing begins with it, so that the error of its reader names it.

        Raises:
            Conflict: Several ids begin with the text; the message names them, ten at most. Or it is too short. Or
                `latest`, and several approvals wait: a decision must not hit another call than the person has seen.
            NotFound: `latest`, and there is none.

        Example:
            result = crib.invoke("search_deals", {"company": "Acme"})
            assert crib.ids.find("run", result.run_id[:20]) == result.run_id
            assert crib.ids.find("run", "latest") == result.run_id
        """
        return self._loop.run(self._ids.find, kind, text)


class Retention(Facade):
    """Prunes a crib's store.

    Args:
        store: The store of the crib.
        clock: Time.
        actor: The actor of the crib.
        keep: How long what has ended is kept, by who prunes by the clock; null for ever.
    """

    def __init__(self, asynchronous: AsynchronousRetention, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._retention = asynchronous

    def prune(self, *, older_than: timedelta, realm: str | None = None, dry_run: bool = False) -> Pruned:
        """Take out what has ended, or was last changed, longer ago than a time.

        Args:
            older_than: The time.
            realm: Whose runs and conversations; those of every realm if null.
            dry_run: Remove nothing, and report what would be removed.

        Raises:
            InvalidInput: The time is negative.

        Example:
            from datetime import timedelta

            pruned = crib.retention.prune(older_than=timedelta(days=30), dry_run=True)
            print(pruned.blobs, {realm: each.gone.runs for realm, each in pruned.realms.items()})
        """
        return self._loop.run(self._retention.prune, older_than=older_than, realm=realm, dry_run=dry_run)

    def history(self, *, limit: int = 50) -> Sequence[Pruning]:
        """What was taken out of the realm, newest first: when, by whom, what had ended before which time, how much.

        Args:
            limit: At most so many records.

        Example:
            for each in crib.retention.history(limit=10):
                print(each.pruned_at, each.made_by, each.ended_before, each.counts.runs)
        """
        return self._loop.run(self._retention.history, limit=limit)

    def prune_if_due(self) -> Pruned | None:
        """Prune as the settings want it, at most once a day among all processes of a store; null if it is not due.

        Example:
            pruned = crib.retention.prune_if_due()
            print(pruned.ended_before if pruned else "not due")
        """
        return self._loop.run(
            self._retention.prune_if_due,
        )


class Settlements(Facade):
    """What is said of calls afterwards.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousSettlements, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._settlements = asynchronous

    def settle(
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
            crib.settlements.settle(run_id, "pay", happened=True, output={"id": "p_1"})
            instance = crib.instances.resume(run_id)  # uses that output
        """
        return self._loop.run(
            self._settlements.settle,
            run_id,
            position,
            happened=happened,
            output=output,
            reason=reason,
            allow_self=allow_self,
        )


class Triggers(Facade):
    """What starts runs without a person.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousTriggers, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._triggers = asynchronous

    def save(self, trigger: TriggerDefinition, *, after: int | None = None) -> int:
        """Store a trigger, in place of the one with its name. It counts from now on: nothing earlier is caught up.

        Args:
            trigger: The trigger.
            after: Number of the revision that the author has changed, 0 for none; null to save over whatever is there.

        Returns:
            The number of the new revision.

        Raises:
            Conflict: Another revision has been saved since `after`.
            InvalidDefinition: Its times, its time zone or an expression of its input cannot be used.
            NotFound: There is no such account, or nothing with the name that it starts or waits for.
            PermissionDenied: The caller may not have runs act as the account.

        Example:
            from toolcrib.contracts import CronSource, ServiceAccount, TriggerDefinition

            crib.accounts.save(ServiceAccount(name="reviewer", grants=("ai://tools/*",)))
            source = CronSource(cron="0 6 * * mon-fri", timezone="Europe/Berlin")
            crib.triggers.save(
                TriggerDefinition(
                    name="review", when=source, start="search_deals", input={"company": "Acme"}, account="reviewer"
                )
            )
            print(crib.triggers.state("review").next_at)
        """
        return self._loop.run(self._triggers.save, trigger, after=after)

    def revision(self, name: str) -> int:
        """The number of the newest revision.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in crib.triggers.list():
                print(trigger.name, crib.triggers.revision(trigger.name))
        """
        return self._loop.run(self._triggers.revision, name)

    def get(self, name: str) -> TriggerDefinition:
        """A trigger as it was saved.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in crib.triggers.list():
                print(crib.triggers.get(trigger.name).start)
        """
        return self._loop.run(self._triggers.get, name)

    def list(self) -> Sequence[TriggerDefinition]:
        """All of the realm, by name.

        Example:
            print([trigger.name for trigger in crib.triggers.list()])
        """
        return self._loop.run(
            self._triggers.list,
        )

    def remove(self, name: str) -> None:
        """Remove a trigger. Runs that it has started continue.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in crib.triggers.list():
                crib.triggers.remove(trigger.name)
        """
        return self._loop.run(self._triggers.remove, name)

    def pause(self, name: str) -> None:
        """Have a trigger start nothing, until it is resumed.

        Raises:
            NotFound: The name is unknown.
            PermissionDenied: The caller may not have runs act as its account.

        Example:
            for trigger in crib.triggers.list():
                crib.triggers.pause(trigger.name)
        """
        return self._loop.run(self._triggers.pause, name)

    def resume(self, name: str) -> None:
        """Have a paused trigger start runs again. What has passed meanwhile is not caught up.

        Raises:
            NotFound: The name is unknown.
            PermissionDenied: The caller may not have runs act as its account.

        Example:
            for trigger in crib.triggers.list():
                crib.triggers.resume(trigger.name)
        """
        return self._loop.run(self._triggers.resume, name)

    def state(self, name: str) -> TriggerState:
        """How a trigger stands: its next time, and what it has started.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in crib.triggers.list():
                state = crib.triggers.state(trigger.name)
                print(state.next_at, state.last_status, state.problem)
        """
        return self._loop.run(self._triggers.state, name)

    def fire(self, name: str, event: JsonObject | None = None) -> TriggerStart:
        """Start what a trigger starts, now, also if it is paused or its last run has not ended.

        Args:
            name: The trigger.
            event: What its input reads as `${event.…}`, beside `scheduled_at`, which is now.

        Raises:
            NotFound: The name is unknown.
            PermissionDenied: The caller may not have runs act as its account.

        Example:
            for trigger in crib.triggers.list():
                start = crib.triggers.fire(trigger.name, {"day": "Monday"})
                print(start.outcome, start.run_id)
        """
        return self._loop.run(self._triggers.fire, name, event)

    def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> TriggerStart:
        """Take a webhook: check its signature, and start what its trigger starts, once per event.

        Args:
            name: The trigger.
            headers: Of the request, with names in lower case.
            body: Byte for byte as it came.

        Raises:
            Unauthenticated: The signature is missing, wrong or too old, or there is no such webhook; the message does
                not say which.
            Conflict: The trigger is paused.
            Unavailable: Other webhooks of the trigger are being taken, and it did not end in time.

        Example:
            from toolcrib.contracts import Unauthenticated

            try:
                crib.triggers.receive("deal-won", {"webhook-id": "msg_1"}, b"{}")
            except Unauthenticated as refused:
                print(refused)
        """
        return self._loop.run(self._triggers.receive, name, headers, body)

    def start_due(self) -> Sequence[TriggerStart]:
        """Start what is due in the realm: times that have passed, runs that have ended. A serving process does so.

        Example:
            for start in crib.triggers.start_due():
                print(start.trigger, start.outcome, start.run_id)
        """
        return self._loop.run(
            self._triggers.start_due,
        )

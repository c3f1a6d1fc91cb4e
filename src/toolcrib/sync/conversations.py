"""Synchronous forms of the classes of several modules.

`toolcrib.crib.agents.conversations`,
`toolcrib.crib.agents.evaluations`,
`toolcrib.crib.agents.questions`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.crib.agents.evaluations import MOST_AT_ONCE
from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcrib.contracts import (
        Conversation,
        ConversationStatus,
        ConversationTurn,
        Evaluation,
        EvaluationCandidate,
        EvaluationDataset,
        Json,
        JsonObject,
        OpenQuestion,
    )
    from toolcrib.core.runs import Result
    from toolcrib.crib.agents.conversations import Conversations as AsynchronousConversations
    from toolcrib.crib.agents.evaluations import Evaluations as AsynchronousEvaluations
    from toolcrib.crib.agents.questions import Questions as AsynchronousQuestions


class Conversations(Facade):
    """What people and the execution service do with conversations.

    Args:
        store: Has them, and the runs.
        engine: Creates the runs of turns.
        clock: Time.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousConversations, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._conversations = asynchronous

    def list(
        self,
        *,
        agent: str | None = None,
        status: ConversationStatus | None = None,
        everybody: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Conversation]:
        """A page of conversations, newest first.

        Args:
            agent: With this agent only.
            status: In this status only.
            everybody: Include all principals of the realm, not only the caller.
            before: The last id of the page before.
            limit: At most so many.

        Raises:
            PermissionDenied: The caller may not.
            NotFound: There is no conversation `before`.

        Example:
            desk("Which deals has Acme?")
            for conversation in crib.conversations.list(agent="desk", limit=10):
                print(conversation.title, conversation.turn_count)
        """
        return self._loop.run(
            self._conversations.list, agent=agent, status=status, everybody=everybody, before=before, limit=limit
        )

    def get(self, conversation_id: str) -> Conversation:
        """A conversation.

        Raises:
            NotFound: It does not exist, or belongs to another principal.
            PermissionDenied: The caller may not read conversations.

        Example:
            answer = desk("Which deals has Acme?")
            conversation = crib.conversations.get(answer.conversation_id)
            print(conversation.title, conversation.status)
        """
        return self._loop.run(self._conversations.get, conversation_id)

    def own(self, conversation_id: str) -> Conversation:
        """A conversation of the caller, which it may continue; grants on other conversations do not count.

        Raises:
            NotFound: It does not exist, or belongs to another principal.

        Example:
            answer = desk("Which deals has Acme?")
            conversation = crib.conversations.own(answer.conversation_id)
        """
        return self._loop.run(self._conversations.own, conversation_id)

    def turns(self, conversation_id: str, *, after: int = 0, limit: int = 50) -> Sequence[ConversationTurn]:
        """The turns after a number, in order; turns whose run was deleted are left out.

        Raises:
            NotFound: There is no such conversation, or it is another's.
            PermissionDenied: The caller may not read conversations.

        Example:
            answer = desk("Which deals has Acme?")
            for turn in crib.conversations.turns(answer.conversation_id):
                print(turn.message, turn.response, turn.tokens)
        """
        return self._loop.run(self._conversations.turns, conversation_id, after=after, limit=limit)

    def change(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        status: ConversationStatus | None = None,
        shared_context: JsonObject | None = None,
    ) -> Conversation:
        """Set the title, the status or the variables; what is null stays.

        Raises:
            NotFound: It does not exist, or belongs to another principal.
            PermissionDenied: The caller may not read conversations.
            InvalidInput: The variables are too large.

        Example:
            answer = desk("Which deals has Acme?")
            crib.conversations.change(answer.conversation_id, title="Deals of Acme", status="archived")
        """
        return self._loop.run(
            self._conversations.change, conversation_id, title=title, status=status, shared_context=shared_context
        )

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation. The runs of its turns stay in the journal, for audit.

        Raises:
            NotFound: It does not exist, or belongs to another principal.
            PermissionDenied: The caller may not delete conversations.
            Conflict: A turn is active or waits.

        Example:
            answer = desk("Which deals has Acme?")
            crib.conversations.delete(answer.conversation_id)
        """
        return self._loop.run(self._conversations.delete, conversation_id)


class Evaluations(Facade):
    """Runs evaluations as the principal that asks for them.

    Args:
        parts: Run the tasks.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousEvaluations, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._evaluations = asynchronous

    def __call__(
        self,
        dataset: EvaluationDataset,
        candidates: Sequence[EvaluationCandidate] = (),
        *,
        repeat: int = 1,
        dry_run: bool = False,
        at_once: int = MOST_AT_ONCE,
        base: str | None = None,
        done: Callable[[int], None] = lambda _: None,
    ) -> Evaluation:
        """Run every task by every candidate, and compare them.

        Args:
            dataset: The tasks.
            candidates: Who runs them; the dataset's own if none is given.
            repeat: How often each task is run by each candidate.
            dry_run: Skip every call that would write, and the tasks' setups.
            at_once: Runs at the same time.
            base: Label or tool of the candidate that the others are compared with; the first if null.
            done: Gets the number of runs that have ended, after each.

        Raises:
            InvalidInput: There is no candidate, two are the same, there is no such base, a script is missing, or a path
                or a schema of a check is not well formed.
            NotFound: A candidate's tool or a judge does not exist.
            InvalidSettings: A candidate's model cannot be opened.

        Example:
            from toolcrib.contracts import ContainsCheck, EvaluationCandidate, EvaluationDataset, EvaluationTask

            task = EvaluationTask(id="acme", input="Which deals has Acme?", checks=(ContainsCheck(text="two deals"),))
            dataset = EvaluationDataset(name="deals", tasks=(task,))
            report = crib.evaluate(dataset, [EvaluationCandidate(tool="desk@1.0.0")], repeat=3)
            print([(each.candidate, each.total.passed) for each in report.candidates])
        """
        return self._loop.run(
            self._evaluations,
            dataset,
            candidates,
            repeat=repeat,
            dry_run=dry_run,
            at_once=at_once,
            base=base,
            done=done,
        )


class Questions(Facade):
    """The questions of a crib's runs.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousQuestions, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._questions = asynchronous

    def of_run(self, run_id: str) -> OpenQuestion | None:
        """What a run asks, or a run that is nested in it; null if nothing.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            result = deals("Give the Globex deals to Rafael")
            question = crib.questions.of_run(result.run_id)
            if question:
                print(question.question, [choice.label for choice in question.choices])
        """
        return self._loop.run(self._questions.of_run, run_id)

    def answer(self, run_id: str, answer: str, *, position: str | None = None) -> Result[Json]:
        """Answer the question of a run, and drive the run until it ends or waits again.

        Example:
            result = deals("Give the Globex deals to Rafael")
            if result.question:
                result = crib.questions.answer(result.run_id, "Rafael Wang")

        Args:
            run_id: The run, or one that it is nested in.
            answer: The value or the label of one of the question's choices, or words in any language.
            position: The position of the question, or of one that was asked together with it; null for the open one.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: It asks nothing, or something else, or was answered before.
            InvalidInput: The answer is empty, or too long.
        """
        return self._loop.run(self._questions.answer, run_id, answer, position=position)

    def leave(self, run_id: str, answer: str, *, position: str | None = None) -> None:
        """Answer a question, and let a serving engine resume the run. The first answer counts; raises as `answer`.

        Example:
            result = deals("Give the Globex deals to Rafael")
            crib.questions.leave(result.run_id, "Rafael Wang")
        """
        return self._loop.run(self._questions.leave, run_id, answer, position=position)

"""What a Python tool may ask for beside its arguments: the facts of its call, secrets, HTTP and the store."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec import Struct

from toolcrib.contracts import InvalidInput, Json, JsonSchema
from toolcrib.infrastructure.store.ports.transactions import Doer, NoTransactions, Work

if TYPE_CHECKING:
    from toolcrib.infrastructure.net import HttpSession

AnswerT = TypeVar("AnswerT")


async def no_transaction(work: Work) -> Json:
    """Refuse: there is no store."""
    return await NoTransactions().transact(Doer("", 0, "", ""), work)


def report_nothing(done: float, total: float | None, message: str) -> None:
    """There are no followers."""
    del done, total, message


async def refuse_to_ask(question: str, answer_type: Any, name: str | None) -> Any:
    """Refuse: there is no run."""
    del answer_type, name
    msg = f"{question!r} cannot be asked outside of a run; call the tool by the crib"
    raise InvalidInput(msg)


class ToolContext(Struct, frozen=True):
    """What a function gets if one of its parameters is annotated with this type.

    Example:
        @tool(side_effects="writes", idempotent=True)
        async def add_note(text: str, context: ToolContext) -> str:
            return f"{context.principal} wrote {text!r} ({context.idempotency_key})"

        crib.add(add_note)
        print((await crib.call("add_note", text="Called Acme")).output)
    """

    run_id: str
    """The run that calls: an agent's, or the instance of a workflow."""
    position: str
    """Of the call in it: in a workflow the name of the step, with `[place]` for an element of a list."""
    realm: str
    """The organisation for which the function is called: the tenant whose definitions, runs and secrets these are."""
    principal: str
    """Id of the identity that acts: a user, a service or a service account."""
    idempotency_key: str
    """The same on every attempt of this call; pass it to systems that accept one."""
    attempt: int
    auth: Mapping[str, str]
    """Resolved secrets by name."""
    http: "HttpSession"
    """The crib's HTTP session: requests through it are subject to the crib's egress policy."""
    call_id: str = ""
    """Of the call's envelope, for logs."""
    tool: str = ""
    """Name of the tool."""
    agent: str | None = None
    """`name@version` of the agent, agentic tool or workflow that calls; null for a direct call."""
    conversation_id: str | None = None
    """Null outside a conversation."""
    session_id: str | None = None
    """Null outside a session."""
    transact: Callable[[Work], Awaitable[Json]] = no_transaction
    """Of a tool with `transactional=True`: `await context.transact(work)` runs `work(connection)` in the store's own
    database, once for the call, and returns its result. It commits together with the record that it has run."""

    report: Callable[[float, float | None, str], None] = report_nothing
    """Shows progress; call `progress` instead."""

    ask_caller: "Callable[[str, Any, str | None], Awaitable[Any]]" = refuse_to_ask
    """Asks who has started the run; call `ask` instead."""

    @overload
    async def ask(self, question: str, *, name: str | None = None) -> str: ...
    @overload
    async def ask(self, question: str, answer_type: type[AnswerT], *, name: str | None = None) -> AnswerT: ...
    @overload
    async def ask(self, question: str, answer_type: JsonSchema, *, name: str | None = None) -> Any: ...
    async def ask(self, question: str, answer_type: Any = str, *, name: str | None = None) -> Any:
        """Ask who has started the run, or is at the other end of its conversation, and wait for the answer: for days.

        The run waits as `awaiting_answer`, without holding a process. It is answered over REST, on the command line, in
        Python, or in the form that an MCP client shows. Then the function is called again from its start, and each
        `ask` that was answered returns its answer at once: ask the same questions in the same order, and do nothing
        before that must not be done twice. Only an `async def` function may ask, and only one that reads, or writes
        with `idempotent=True`.

        Args:
            question: For a person, at most 2,000 characters.
            answer_type: What the answer has to be: `str` for words; `bool`, `int`, an `Enum`, a pydantic model; or a
                JSON Schema, for JSON.
            name: Of the question, for clients of MCP, which answer under it.

        Raises:
            Exception: The call fails, with what the function asks as its error, if there is no person to ask: the run
                is part of another one, without a conversation.

        Example:
            @tool(side_effects="reads")
            async def pick_deal(company: str, context: ToolContext) -> str:
                stage = await context.ask(f"Which stage of {company}?")
                return f"{company}: {stage}"

            crib.add(pick_deal)
            waiting = await crib.invoke("pick_deal", {"company": "Acme"})
            print((await crib.questions.answer(waiting.run_id, "negotiation")).output)
        """
        return await self.ask_caller(question, answer_type, name)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell how far the call has come. Those who follow the run see it as the event `progress`.

        It may be called as often as you like: followers get the newest report a few times a second, and the last one
        in any case. It returns at once, records nothing, and never fails, also without followers.

        Args:
            done: How much is done, in any unit. A number that is not finite is ignored.
            total: How much there is to do, in the same unit; null if it is unknown.
            message: What is being done. At most 500 characters are shown.

        Example:
            @tool(side_effects="reads")
            def count_words(texts: list[str], context: ToolContext) -> int:
                words = 0
                for done, text in enumerate(texts, 1):
                    words += len(text.split())
                    context.progress(done, len(texts), "counting")
                return words
        """
        self.report(done, total, message)

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """The logger `toolcrib.tools.NAME` of the tool, whose records have `run_id`, `call_id` and `tool`.

        What a function logs is not redacted.

        Example:
            @tool(side_effects="reads")
            def find_note(text: str, context: ToolContext) -> str:
                context.logger.info("looking for %r", text)
                return text
        """
        extra = {"run_id": self.run_id, "call_id": self.call_id, "tool": self.tool}
        return logging.LoggerAdapter(logging.getLogger(f"toolcrib.tools.{self.tool}"), extra)

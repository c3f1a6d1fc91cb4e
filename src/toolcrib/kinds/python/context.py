"""What a Python tool may ask for beside its arguments: the facts of its call, secrets, HTTP and the store."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from msgspec import Struct

from toolcrib.contracts import InvalidInput, Json, JsonSchema
from toolcrib.infrastructure.store.ports.transactions import Doer, NoTransactions, Work

if TYPE_CHECKING:
    from toolcrib.contracts.runs.executions import AskedOf
    from toolcrib.contracts.runs.stream import LogLevel
    from toolcrib.infrastructure.net import HttpSession

AnswerT = TypeVar("AnswerT")


async def no_transaction(work: Work) -> Json:
    """Refuse: there is no store."""
    return await NoTransactions().transact(Doer("", 0, "", ""), work)


def report_nothing(done: float, total: float | None, message: str) -> None:
    """There are no followers."""
    del done, total, message


def log_nothing(level: "LogLevel", message: str) -> None:
    """There are no followers."""
    del level, message


class Ask(Struct, frozen=True):
    """A question of a function that asks several at once with `ToolContext.ask_all`.

    Example:
        @tool(side_effects="none")
        async def invite(context: ToolContext) -> str:
            name, greeting = await context.ask_all(Ask("Who comes?"), Ask.of_model("Greet them", max_tokens=50))
            return f"{greeting}, {name}"

        crib.add(invite)
    """

    question: str
    answer_type: Any = str
    name: str | None = None
    asked_of: "AskedOf" = "person"
    max_tokens: int | None = None

    @classmethod
    def of_model(cls, prompt: str, *, max_tokens: int = 1_000, name: str | None = None) -> "Ask":
        """A prompt for the model of an MCP client; the answer is its text."""
        return cls(prompt, str, name, "client_model", max_tokens)

    @classmethod
    def of_roots(cls, *, name: str | None = None) -> "Ask":
        """What folders and files an MCP client works with; the answer is a list of objects with `uri` and `name`."""
        return cls("Which folders or files do you work with?", _ROOTS, name, "client_roots")


_ROOTS: Final[JsonSchema] = {
    "type": "array",
    "items": {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
}


async def refuse_to_ask(asks: Sequence[Ask]) -> Sequence[Any]:
    """Refuse: there is no run."""
    msg = f"{asks[0].question!r} cannot be asked outside of a run; call the tool by the crib"
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

    log_live: "Callable[[LogLevel, str], None]" = log_nothing
    """Shows a message; call `log` instead."""

    ask_caller: Callable[[Sequence[Ask]], Awaitable[Sequence[Any]]] = refuse_to_ask
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
        [answer] = await self.ask_caller([Ask(question, answer_type, name)])
        return answer

    async def ask_model(self, prompt: str, *, max_tokens: int = 1_000, name: str | None = None) -> str:
        """Ask the model of the MCP client that has called the tool (sampling), and wait for its answer.

        What holds for `ask` holds here. A client without a model gets an error, and the call ends; a run that was not
        started by an MCP client asks a person.

        Args:
            prompt: For the model, at most 2,000 characters.
            max_tokens: Of its answer.
            name: Of the question.

        Example:
            @tool(side_effects="reads")
            async def greet(company: str, context: ToolContext) -> str:
                return await context.ask_model(f"Greet {company}, in one sentence", max_tokens=100)
        """
        [answer] = await self.ask_caller([Ask.of_model(prompt, max_tokens=max_tokens, name=name)])
        return answer

    async def ask_roots(self, *, name: str | None = None) -> list[dict[str, str]]:
        """Ask the MCP client that has called the tool which folders and files it works with (roots).

        What holds for `ask_model` holds here.

        Args:
            name: Of the question.

        Example:
            @tool(side_effects="reads")
            async def folders(context: ToolContext) -> list[str]:
                return [root["uri"] for root in await context.ask_roots()]
        """
        [answer] = await self.ask_caller([Ask.of_roots(name=name)])
        return answer

    async def ask_all(self, *asks: Ask) -> list[Any]:
        """Ask several questions at once; a client shows or answers all of them together.

        Example:
            from toolcrib import Ask

            @tool(side_effects="reads")
            async def invite(context: ToolContext) -> str:
                name, seats = await context.ask_all(Ask("Who?"), Ask("How many seats?", int))
                return f"{name}: {seats}"
        """
        return list(await self.ask_caller(asks))

    def log(self, message: str, level: "LogLevel" = "info") -> None:
        """Tell what the call is doing, to those who follow the run (the event `log`) and to its MCP client.

        It returns at once, records nothing, and never fails, also without followers. Secrets of the call are redacted,
        and content filters apply. At most 1,000 messages of 2,000 characters are shown. Use `logger` for your own log.

        Args:
            message: For a person.
            level: How grave it is: `debug`, `info`, `warning` or `error`.

        Example:
            @tool(side_effects="reads")
            def import_notes(texts: list[str], context: ToolContext) -> int:
                context.log(f"{len(texts)} notes are there", "debug")
                return len(texts)
        """
        self.log_live(level, message)

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

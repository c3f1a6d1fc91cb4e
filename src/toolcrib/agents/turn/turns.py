"""The turns of a run: one model request per turn, then its tool calls in parallel, until the model answers.

Positions are `t1.llm`, `t1.c1`, `t1.c2`, `t2.llm`… Agents and the agentic mode differ in their prompt and answer,
which is their `Work`. Limits end a run from outside, with its results so far; the last request, for an answer from a
short form of these results, uses a reserved amount and offers no tools. A model that repeats calls with equal outcomes
is told once, and then stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
import orjson

from toolcrib.agents.model.answer_checks import JournaledCheck, accept
from toolcrib.agents.model.client import ModelClient
from toolcrib.agents.model.context_window import ContextWindow
from toolcrib.agents.model.json_answers import AnswerFormat, ask_json, model_failure
from toolcrib.agents.model.tool_calls import (
    MAX_REFUSED_TURNS,
    Calls,
    arguments_of,
    calls_in_short,
    error_for_model,
    files_for_model,
    is_refused,
    preview,
    read_calls,
    refusal_key,
    text_for_model,
    too_many_refusals,
)
from toolcrib.agents.toolset.tool_search import FIND_TOOLS, finder, reading
from toolcrib.agents.toolset.toolset import Toolset
from toolcrib.agents.turn.call_evidence import CallEvidence
from toolcrib.contracts import (
    ErrorCode,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    Purpose,
    Reason,
    StopReason,
    ToolEnvelope,
    ToolError,
)
from toolcrib.core.executor import CallRequest, error
from toolcrib.core.policy import CALL_LIMITS
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import BudgetExhausted, ModelCall, Pending, RunContext, RunEnd, clip_text
from toolcrib.llm import Message, Request, Response, ToolResult, ToolSet, user
from toolcrib.llm import ToolCall as ModelToolCall
from toolcrib.llm.text import foreign_call


class CallResult(NamedTuple):
    """What came of one call of the model's."""

    call: ModelToolCall
    text: str
    """What the model is told."""
    error: ToolError | None = None
    refused: bool = False
    envelope: ToolEnvelope | None = None
    """Null if nothing was called: it was a look into the catalogue, or no call that could be taken."""


class ToolCallRunner:
    """Does what the answers of one run ask for.

    Args:
        context: The run.
        offer: Its tools.
        found: Names of the hidden tools that the model has found before.
        grounds: Judges where the arguments of calls that write come from; nothing does if null.
    """

    def __init__(
        self, context: RunContext, offer: Toolset, found: Sequence[str] = (), grounds: CallEvidence | None = None
    ) -> None:
        self._grounds = grounds
        self._context = context
        self._offer = offer
        self._found = list(found)
        """Names of the hidden tools that the model has found, in order."""
        self.tools: ToolSet = offer.with_found(self._found)
        """What the model is offered now."""

    @property
    def has_found(self) -> bool:
        """Whether more is offered than from the start."""
        return bool(self._found)

    async def perform(self, calls: Calls, done: Sequence[ToolEnvelope] = ()) -> Sequence[CallResult]:
        """All calls of a turn, in parallel; the outcomes are in the order of the calls.

        Args:
            calls: Of the turn.
            done: The calls that were made before.
        """
        if self._grounds is not None:
            calls = await self._with_refusals(calls, self._grounds, done)
        context, offer, refused = self._context, self._offer, calls.refused
        hidden = offer.folded.hidden
        looks: list[str] = []
        begun: list[tuple[str, ModelToolCall, Pending[ToolEnvelope]]] = []
        for place, call in calls.made.items():
            if place in refused:
                continue
            if hidden and call.name == FIND_TOOLS:
                looks.append(place)
            else:
                request = CallRequest(place, offer.real_name(call.name), arguments_of(call))
                begun.append((place, call, context.call(request)))
        outcomes: dict[str, CallResult] = {}
        for place in looks:
            outcomes[place] = await self._look(place, calls.made[place])
        for place, failure in refused.items():
            await context.emit(refusal_key(place), "call_refused", {"message": failure.message})
            outcomes[place] = CallResult(calls.made[place], _dump(error_for_model(failure)), failure, refused=True)
        envelopes = await context.wait_all([pending for _, _, pending in begun])
        for (place, call, _), envelope in zip(begun, envelopes, strict=True):
            failed = envelope.error is not None
            offered = [tool.name for tool in self.tools.tools] if failed else ()
            text = text_for_model(envelope, called=call.name, offered=offered)
            outcomes[place] = CallResult(call, text, envelope.error, failed and is_refused(envelope), envelope)
        return [outcomes[place] for place in calls.made]

    async def _with_refusals(self, calls: Calls, grounds: CallEvidence, done: Sequence[ToolEnvelope]) -> Calls:
        """The calls with a refusal for those whose arguments come from nowhere."""
        refused = dict(calls.refused)
        for place, call in calls.made.items():
            if place not in refused:
                name = self._offer.real_name(call.name)
                failure = await grounds.refusal(place, name, arguments_of(call), done)
                if failure is not None:
                    refused[place] = failure
        return calls._replace(refused=refused)

    async def _look(self, position: str, call: ModelToolCall) -> CallResult:
        """Look into the catalogue of hidden tools; what is found can be called from now on.

        What the model is told of it stands nowhere else, so it is written down as well.
        """
        folded, wanted = self._offer.folded, arguments_of(call)
        problems = compile_schema(finder(folded.hidden).schema).problems(wanted)
        if problems:
            message = f"the arguments of {FIND_TOOLS!r} are not valid: {'; '.join(map(str, problems))}"
            failure = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)
            await self._context.emit(position, "call_refused", {"told": error_for_model(failure)})
            return CallResult(call, _dump(error_for_model(failure)), failure, refused=True)
        query: JsonObject = wanted

        async def look() -> Json:
            found = folded.find(query["query"], query.get("group"))
            return {**query, "found": [item.alias for item in found], "told": reading(found)}

        names = (await self._context.once(position, "tools_found", look))["found"]
        self._found += [name for name in names if name not in self._found]
        self.tools = self._offer.with_found(self._found)
        by_name = {item.alias: item for item in folded.hidden}
        return CallResult(call, _dump(reading([by_name[name] for name in names])))


def _dump(value: JsonObject) -> str:
    return orjson.dumps(value).decode()


NOTED: Final = 3
"""Equal turns in a row after which the model is told."""
MOST: Final = 6
"""Equal turns in a row that end the run."""
NOTE: Final = (
    f"You have made these calls {NOTED} times now, with the same outcome each time. Making them again changes nothing: "
    "do something else, or answer with what you have."
)

Done: TypeAlias = tuple[str, str, str]
"""Name, arguments as they were written, and what came of it."""


class LoopDetector:
    """Counts turns in a row that did the same."""

    def __init__(self) -> None:
        self._last: Sequence[Done] = ()
        self._count = 0

    def count(self, turn: Sequence[Done]) -> int:
        """How many turns in a row have done just this.

        Args:
            turn: The calls of a turn.
        """
        self._count = self._count + 1 if turn == self._last else 1
        self._last = turn
        return self._count


def is_repeating(model: str, turn: Sequence[Done]) -> ToolError:
    """The error of a run whose model made the same calls again and again."""
    names = ", ".join(dict.fromkeys(name for name, _, _ in turn))
    message = f"the model {model!r} made the same calls with the same outcome {MOST} times in a row: {names}"
    return error(ErrorCode.POLICY_DENIED, Reason.REPEATED_CALLS, f"{message}; it was told to stop that after {NOTED}")


_SYSTEM: Final = (
    "You tell what a task has come to, from the results that you are given and nothing else. The work was stopped "
    "before its end: say what is done, what is known and what is missing, in a few sentences."
)
_LONGEST_TASK: Final = 4000
_LONGEST_FACTS: Final = 8000
_LONGEST_WHY: Final = 500
_MOST_TOKENS: Final = 1000


class FinalAnswer:
    """Asks for the last answer of one run.

    Args:
        model_client: Where the model is asked.
        task: What the run was asked to do.
    """

    def __init__(self, model_client: ModelClient, task: str) -> None:
        self._model_client = model_client
        self._task = clip_text(task, _LONGEST_TASK)

    def keep(self) -> None:
        """Hold back what the longest such request costs."""
        self._model_client.context.keep_answer(
            self._model_client.model, self._request("x" * (_LONGEST_FACTS + _LONGEST_WHY))
        )

    async def ask(self, done: Sequence[ToolEnvelope], why: str) -> str:
        """The answer; empty if there is none.

        Args:
            done: The calls that were made.
            why: Which limit was reached.
        """
        if not any(found.ok for found in done):
            return ""
        facts = preview(calls_in_short(done), _LONGEST_FACTS)
        request = self._request(f"Results so far: {facts}\n\nStopped because: {clip_text(why, _LONGEST_WHY)}")
        call = self._model_client.call("answer", "answer", request, new=request.messages, system=_SYSTEM)
        response = await self._model_client.context.last_answer(call)
        return "" if response is None else response.message.text.strip()

    def _request(self, facts: str) -> Request:
        most = min(_MOST_TOKENS, self._model_client.context.budget.limits.max_tokens_per_call)
        request = self._model_client.request((user(f"Task: {self._task}\n\n{facts}"),), system=_SYSTEM)
        return msgspec.structs.replace(request, max_tokens=most)


_EMPTY = "Your answer was empty. Call a tool, or answer the task in words."
_UNREADABLE = "Nothing was called, because your answer could not be read. Write all its calls again, corrected:\n"
_PARTLY_UNREADABLE = "Calls of your answer that could not be read were left out:\n"
_FOREIGN = (
    "Nothing was called: you wrote a call as text ({mark}), in a format that is not read here. Call the tool in the "
    "way that you were given, or give your final answer in words."
)
_FOREIGN_WARNING = (
    "the model {model!r} wrote a call as text ({mark}), which was not made{end}; see whether its address can call "
    "tools, or set tool_calling"
)
_FINISH = "Give your final answer now, in words, to whoever asked."


class TurnContext(Protocol):
    """What the turns of one run are about."""

    @property
    def model_client(self) -> ModelClient:
        """Where the model is asked."""
        ...

    @property
    def offer(self) -> Toolset:
        """What it is offered."""
        ...

    @property
    def opening(self) -> tuple[Message, ...]:
        """What is said before the first turn; the last is the user's message, the others stand in journals already."""
        ...

    @property
    def answer_schema(self) -> JsonSchema | None:
        """What an answer must meet that can be nothing but the final one, since no tool is offered."""
        ...

    def prompt(self, done: Sequence[ToolEnvelope]) -> str:
        """The system prompt, after some calls."""
        ...

    def partial(self, turns: "Turns") -> Json:
        """What the run has so far, if it ends before its answer."""
        ...

    async def end_with_answer(self, turns: "Turns", response: Response) -> RunEnd:
        """How the run ends with an answer that calls nothing; it may be empty."""
        ...


@dataclass(slots=True)
class _NextRequest:
    """What the next request to the model has, besides what the journal knows."""

    new: tuple[Message, ...]
    """Messages that stand nowhere else in the journal."""
    purpose: Purpose = "tool_selection"


class Turns:
    """The turns of one run.

    Args:
        work: What they are about.
        found: Names of the hidden tools that the model has found before.
        grounds: Judges where the arguments of calls that write come from; nothing does if null.
    """

    def __init__(self, work: TurnContext, found: Sequence[str] = (), grounds: CallEvidence | None = None) -> None:
        self.done: list[ToolEnvelope] = []
        """The calls that were made."""
        self.last_text = ""
        """The last words of the model."""
        self.closing = ""
        """What it says of a run that a limit has stopped, if it could be asked."""
        self._work = work
        self._model_client = work.model_client
        self._acting = ToolCallRunner(work.model_client.context, work.offer, found, grounds)
        self._room = ContextWindow(work.model_client.context, work.model_client.llm)
        self._closing = FinalAnswer(work.model_client, work.opening[-1].text)
        self._messages = work.opening
        self._next_request = _NextRequest(work.opening[-1:])
        self._system = ""
        self._repeats = LoopDetector()
        self._refused_turns = 0
        self._was_empty = False
        self._failures: list[CallResult] = []
        """The calls that failed or were refused."""
        self._was_foreign = False

    async def run(self) -> RunEnd:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        context, turn, ended = self._model_client.context, 0, None
        context.partial = self._partial
        self._closing.keep()
        try:
            while ended is None:
                turn += 1
                response = await context.model(await self._next_call(turn))
                self.last_text = response.message.text.strip() or self.last_text
                if response.stop == "pause":
                    self._messages = (*self._messages, response.message)
                elif response.message.calls:
                    ended = await self._act(turn, response)
                elif response.problems:
                    ended = self._unreadable(response)
                else:
                    ended = await self._answer(turn, response)
        except BudgetExhausted as limit:
            return await self.end_at_limit(limit.shortage.stop_reason, limit.error)
        except ModelError as failure:
            stop: StopReason = "policy" if failure.kind == "content_filter" else "error"
            return self.end_with_failure(model_failure(failure), stop_reason=stop)
        return ended

    def _partial(self) -> Json:
        return self._work.partial(self) if self.done or self.last_text else None

    async def final_words(self, ready: Message) -> str:
        """The final answer in words, asked for because the model has said that it is ready.

        Args:
            ready: The answer in which it did.
        """
        new, tools = (user(_FINISH),), self._acting.tools
        request = self._model_client.request(
            (*self._until(ready), *new), system=self._system, tools=tools, tool_choice="none" if tools else "auto"
        )
        response = await self._model_client.context.model(
            self._model_client.call("format", "formatting", request, new=new)
        )
        self.last_text = response.message.text.strip() or self.last_text
        return response.message.text

    async def format_answer(
        self, ready: Message, question: str, schema: JsonSchema, check: JournaledCheck = accept
    ) -> JsonObject:
        """The final answer as an object that meets a schema, asked for where the conversation stands.

        Args:
            ready: The model's last answer.
            question: What it is asked.
            schema: What it must meet.
            check: Judges an answer that meets the schema.

        Raises:
            UnusableAnswer: No answer met the schema.
            ModelError: The provider failed.
            BudgetExhausted: The run may not spend another call.
        """
        return await ask_json(
            self._model_client,
            "format",
            "formatting",
            question,
            schema,
            name="answer",
            system=self._system,
            before=self._until(ready),
            tools=self._acting.tools,
            reading=AnswerFormat(check=check),
        )

    async def _next_call(self, turn: int) -> ModelCall:
        work, model_client = self._work, self._model_client
        before, self._system = self._system, work.prompt(self.done)
        tools: ToolSet = self._acting.tools
        own = len(work.opening) - 1
        self._messages = await self._room.fit(turn, self._messages, own, system=self._system, tools=tools)
        request = model_client.request(
            self._messages,
            system=self._system,
            tools=tools,
            output_schema=None if tools else work.answer_schema,
        )
        offered = msgspec.json.encode(tools.tools) if self._acting.has_found else work.offer.offered
        kept = await model_client.context.keep(offered)  # in each turn: what was written before is durable then too
        new, purpose = self._next_request.new, self._next_request.purpose
        self._next_request = _NextRequest((), purpose)
        return ModelCall(
            f"t{turn}.llm",
            purpose,
            model_client.model,
            request,
            new=new,
            system=None if self._system == before else self._system,
            tools=kept,
        )

    def _until(self, last: Message) -> tuple[Message, ...]:
        return (*self._messages, last) if last.parts else self._messages

    def _tell(self, text: str, purpose: Purpose = "error_recovery") -> None:
        message = user(text)
        self._messages = (*self._messages, message)
        self._next_request = _NextRequest((*self._next_request.new, message), purpose)

    # Tools ------------------------------------------------------------------------------------------------------------

    async def _act(self, turn: int, response: Response) -> RunEnd | None:
        calls = read_calls(response.message, turn, parallel=self._model_client.parallel)
        outcomes = await self._acting.perform(calls, self.done)
        results: list[ToolResult] = []
        failures: list[ToolError] = []
        all_refused, shows_files = True, self._model_client.context.request.shows_files
        for outcome in outcomes:
            call, text, failure, refused, envelope = outcome
            if envelope is not None:
                self.done.append(envelope)
            if failure is not None:
                failures.append(failure)
                self._failures.append(outcome)
            all_refused = all_refused and refused
            files = files_for_model(envelope) if shows_files and envelope is not None and envelope.attachments else ()
            results.append(ToolResult(call.id, call.name, text, is_error=failure is not None, files=files))
        if failures:
            envelopes = [outcome.envelope for outcome in outcomes if outcome.envelope is not None]
            limit = _limit_hit(envelopes)
            if limit is not None:
                failed = next(found.error for found in envelopes if found.error is not None)
                return await self.end_at_limit(limit, failed)
        self._messages = (*self._messages, calls.message, Message("user", tuple(results)))
        self._next_request = _NextRequest((), "error_recovery" if failures else "result_review")
        if response.problems:
            self._tell(_PARTLY_UNREADABLE + "\n".join(response.problems))
        if all_refused:
            return self._count_refusal(failures[-1])
        self._refused_turns = 0
        return self._check_repetition(outcomes)

    def _count_refusal(self, failure: ToolError) -> RunEnd | None:
        """Nothing of a turn could be done; after some such turns the run ends."""
        self._refused_turns += 1
        if self._refused_turns < MAX_REFUSED_TURNS:
            return None
        stop: StopReason = "policy" if failure.code is ErrorCode.POLICY_DENIED else "error"
        return self.end_with_failure(too_many_refusals(self._model_client.model.name, failure), stop_reason=stop)

    def _unreadable(self, response: Response) -> RunEnd | None:
        """The model wrote calls that are none."""
        problems = "\n".join(response.problems)
        self._messages = (*self._messages, response.message)
        self._tell(f"{_UNREADABLE}{problems}")
        return self._count_refusal(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, problems))

    def _check_repetition(self, outcomes: Sequence[CallResult]) -> RunEnd | None:
        """A model that does the same again and again is told so, and then stopped."""
        turn = [(outcome.call.name, outcome.call.args, outcome.text) for outcome in outcomes]
        count = self._repeats.count(turn)
        if count == NOTED:
            self._tell(NOTE)
        if count < MOST:
            return None
        return self.end_with_failure(is_repeating(self._model_client.model.name, turn), stop_reason="policy")

    # The end ----------------------------------------------------------------------------------------------------------

    async def _answer(self, turn: int, response: Response) -> RunEnd | None:
        if not response.wants_format and not stop_warnings(response):
            if self._acting.tools and await self._is_foreign(turn, response):
                return None
            if not self._was_empty and not response.message.text.strip():
                self._was_empty = True
                self._tell(_EMPTY)
                return None
        ended = await self._work.end_with_answer(self, response)
        if not self._failures or self._model_client.context.request.has_old_rules:
            return ended
        return msgspec.structs.replace(ended, warnings=(*ended.warnings, _in_numbers(self._failures)))

    async def _is_foreign(self, turn: int, response: Response) -> bool:
        """Whether an answer was a call in the format of other models, of which the model was told now; once in a run.

        What the model was told stands in the journal: in runs of older releases it was told nothing.
        """
        mark, context = foreign_call(response.message.text), self._model_client.context
        if mark is None:
            return False
        key, ahead = f"t{turn}.foreign", context.ahead
        is_told = key in context.progress_keys or any(getattr(event, "key", None) == key for event in ahead or ())
        if ahead is not None and not is_told:
            return False
        end = " and is taken for its answer" if self._was_foreign else ""
        context.warn(_FOREIGN_WARNING.format(model=self._model_client.model.name, mark=mark, end=end))
        if self._was_foreign:
            return False
        self._was_foreign = True
        message = _FOREIGN.format(mark=mark)
        await context.emit(key, "call_refused", {"message": message})
        self._messages = (*self._messages, response.message)
        self._tell(message)
        return True

    async def end_at_limit(self, stop_reason: StopReason, failure: ToolError) -> RunEnd:
        """An end at a limit: with an answer from what there is, if the model can still be asked for one."""
        why = failure.message
        self.closing = await self._closing.ask(self.done, why)
        self.last_text = self.closing or self.last_text
        return RunEnd(
            partial=self._work.partial(self),
            status="incomplete",
            stop_reason=stop_reason,
            error=failure,
            warnings=(why,),
        )

    def end_refused(self, response: Response) -> RunEnd:
        """The failure of a model that did not answer the task, by its own rules or its provider's."""
        message = f"the model {self._model_client.model.name!r} did not answer: {refusal_of(response)}"
        refused = error(ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED, message)
        return self.end_with_failure(refused, stop_reason="policy")

    def end_with_failure(
        self, failure: ToolError, *, stop_reason: StopReason, warnings: tuple[str, ...] = ()
    ) -> RunEnd:
        """A failure, with what was done until then."""
        partial = self._work.partial(self) if self.done or self.last_text else None
        return RunEnd(partial=partial, status="failed", stop_reason=stop_reason, error=failure, warnings=warnings)

    def nothing(self, response: Response) -> RunEnd:
        """The failure of a model that has nothing to say."""
        message = f"the model {self._model_client.model.name!r} ended with an empty answer (stop: {response.stop})"
        empty = error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)
        return self.end_with_failure(empty, stop_reason="error", warnings=stop_warnings(response))


REFUSALS: Final = frozenset({"content_filter", "refusal"})
"""Why a model ends an answer that is none."""
_NAMED: Final = 3
"""Failed calls that a warning names."""


def _in_numbers(failures: Sequence[CallResult]) -> str:
    """What is to be said of an answer that was given although calls before it had failed."""
    denied = sum(
        found.refused or (found.envelope is not None and found.envelope.status == "denied") for found in failures
    )
    counts = [f"{number} {what}" for number, what in ((denied, "denied"), (len(failures) - denied, "failed")) if number]
    last = [f"{found.call.name}: {found.error.message}" for found in failures[-_NAMED:] if found.error is not None]
    calls = "call was" if len(failures) == 1 else "calls were"
    return f"{len(failures)} {calls} without a result ({', '.join(counts)}), and the model went on; {'; '.join(last)}"


def end_cut_off(partial: Json, warnings: tuple[str, ...]) -> RunEnd:
    """The end of a run whose last answer was cut off at `max_tokens`."""
    failure = error(ErrorCode.POLICY_DENIED, Reason.MAX_TOKENS_EXCEEDED, warnings[0])
    return RunEnd(partial=partial, status="incomplete", stop_reason="max_tokens", error=failure, warnings=warnings)


def stop_warnings(response: Response) -> tuple[str, ...]:
    """What is to be said of an answer that did not end by itself."""
    match response.stop:
        case "length":
            return ("the answer was cut off at max_tokens; raise max_tokens",)
        case "content_filter" | "refusal":
            return (f"the model did not answer the task: {refusal_of(response)}",)
        case _:
            return ()


def refusal_of(response: Response) -> str:
    """How an answer was refused: in our word, and in the provider's if that is another, which may say nothing."""
    return response.stop if response.raw_stop in ("", response.stop) else f"{response.stop} ({response.raw_stop})"


def _limit_hit(envelopes: Sequence[ToolEnvelope]) -> StopReason | None:
    """The limit of this run that denied every call of a turn, if it did."""
    reasons = {found.error.reason if found.error and found.status == "denied" else None for found in envelopes}
    return CALL_LIMITS.get(reasons.pop()) if len(reasons) == 1 else None

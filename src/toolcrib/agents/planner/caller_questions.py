"""Questions of a run about its task: wording, waiting and answers.

A run without a caller waits for the answer, as does a run in a conversation, whose next message is the answer. A run
called by an agent outside a conversation, or by a workflow, ends as `incomplete` with its question.
"""

from typing import Final, cast

import orjson
from msgspec import Struct

from toolcrib.agents.model.json_answers import UnusableAnswer, ask_json
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.contracts import ErrorCode, Json, JsonObject, JsonSchema, ModelError, Reason
from toolcrib.contracts.runs.executions import ChangePreview, Choice, OpenQuestion, QuestionReason, answer_signal
from toolcrib.core.executor import error
from toolcrib.core.runs import QUESTION_ASKED, BudgetExhausted, RunEnd, may_ask, question_key
from toolcrib.llm.base.quirks import profile_of

YES: Final = "yes"
NO: Final = "no"
UNANSWERED: Final = "the task was not carried out: it needs an answer"
"""Warning of a run that ends with its question."""

_SYSTEM: Final = "You word a question to a person, briefly and politely, in the language of that person's task."
_WORD: Final = """Task: {task}

Before the task can be carried out, the person must be asked. The facts, which are all true:
{facts}

Ask in the language of the task. Say what is unclear or what would happen. Keep every choice and its value; word its
label and what would happen then."""
_READ_SYSTEM: Final = "You read the answer of a person, in whatever language, and say whether it is a clear consent."
_READ: Final = """The person was asked: {question}

The answer is: {answer}

Is that a clear consent? Anything else than a clear yes is no."""
_CONSENT: Final[JsonSchema] = {
    "type": "object",
    "properties": {"consent": {"type": "string", "enum": [YES, NO]}},
    "required": ["consent"],
    "additionalProperties": False,
}
_MOST_CHOICES: Final = 12
_TEXT: Final[JsonSchema] = {"type": "string", "maxLength": 600}


class QuestionDraft(Struct, frozen=True, kw_only=True):
    """A question before it is worded."""

    text: str
    """In English, or in the model's own words if it has asked itself."""
    reason: QuestionReason
    choices: tuple[Choice, ...] = ()
    assumptions: tuple[str, ...] = ()
    preview: ChangePreview | None = None
    worded: bool = False
    """It is in the language of the task already."""


class Unanswered(Exception):
    """A question that nobody here can be asked: the run ends with it.

    Args:
        question: What it asks.
    """

    def __init__(self, question: OpenQuestion) -> None:
        super().__init__(question.question)
        self.question = question


async def ask_person(setup: Setup, position: str, draft: QuestionDraft) -> str:
    """Ask, and wait for the answer: the value of a choice, or words.

    Args:
        setup: The run.
        position: Of the question in the journal.
        draft: What to ask.

    Raises:
        Unanswered: The run has a caller, which gets the question instead.
        Suspended: There is no answer yet.
    """
    context = setup.context
    known = cast("JsonObject | None", context.find_progress(question_key(position)))
    if known is None:
        question = await word_question(setup, position, draft)
        known = question.model_dump(mode="json")
        await context.emit(question_key(position), QUESTION_ASKED, known)
    question = OpenQuestion.model_validate(known)
    if not may_ask(context.request):
        raise Unanswered(question)
    signal = await context.wait_signal(answer_signal(position), status="awaiting_answer")
    if signal is None:
        raise Unanswered(question)
    return str(signal.payload["answer"])


async def consents(setup: Setup, position: str, draft: QuestionDraft) -> bool:
    """Ask whether to go on, and whether the answer says so; words that are no choice are read by the model.

    Raises:
        Unanswered: As `ask_person`, like the next.
        Suspended: See there.
    """
    answer = (await ask_person(setup, position, draft)).strip()
    if answer.casefold() in {YES, NO}:
        return answer.casefold() == YES
    prompt = _READ.format(question=draft.text, answer=answer)
    try:
        found = await ask_json(
            setup, f"{position}.answer", "question", prompt, _CONSENT, name="consent", system=_READ_SYSTEM
        )
    except (ModelError, UnusableAnswer) as problem:
        setup.context.warn(f"the answer {answer!r} could not be read, so nothing is done: {problem}")
        return False
    return found["consent"] == YES


async def word_question(setup: Setup, position: str, draft: QuestionDraft) -> OpenQuestion:
    """The question in the language of the task, if the model can word it; the facts stay what they are.

    One that repeats itself is not asked to: the facts say more.
    """
    question = OpenQuestion(
        run_id=setup.context.run_id,
        position=position,
        question=draft.text,
        reason=draft.reason,
        choices=draft.choices[:_MOST_CHOICES],
        assumptions=draft.assumptions,
        preview=draft.preview,
    )
    if draft.worded or not profile_of(setup.model.name).ends_texts:
        return question
    facts: JsonObject = {
        "question": draft.text,
        "assumptions": list(draft.assumptions),
        "choices": [choice.model_dump(mode="json") for choice in question.choices],
    }
    if draft.preview is not None:
        facts["items"] = draft.preview.items
    prompt = _WORD.format(task=setup.task, facts=orjson.dumps(facts).decode())
    try:
        answer = await ask_json(
            setup,
            f"{position}.wording",
            "question",
            prompt,
            _schema(question),
            name="question",
            system=_SYSTEM,
            repairs=0,
        )
    except (ModelError, UnusableAnswer, BudgetExhausted) as problem:
        setup.context.warn(f"the question could not be worded in the language of the task: {problem}")
        return question
    words = cast("JsonObject", answer.get("choices") or {})
    choices = tuple(
        choice.model_copy(update={name: text for name, text in words.get(choice.value, {}).items() if text})
        for choice in question.choices
    )
    return question.model_copy(update={"question": answer["question"], "choices": choices})


def _schema(question: OpenQuestion) -> JsonSchema:
    choices = {
        choice.value: {
            "type": "object",
            "properties": {"label": _TEXT, "outcome": _TEXT},
            "required": ["label", "outcome"],
            "additionalProperties": False,
        }
        for choice in question.choices
    }
    properties: JsonObject = {"question": _TEXT}
    if choices:
        properties["choices"] = {
            "type": "object",
            "properties": choices,
            "required": list(choices),
            "additionalProperties": False,
        }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def end_with_question(question: OpenQuestion, warnings: tuple[str, ...] = (), partial: Json = None) -> RunEnd:
    """The end of a run that has a question and cannot wait for the answer.

    Args:
        question: What it asks.
        warnings: What else there is to say.
        partial: What was done before it.
    """
    choices = [choice.model_dump(mode="json") for choice in question.choices]
    offered = f" ({', '.join(choice.label for choice in question.choices)})" if choices else ""
    failure = error(
        ErrorCode.VALIDATION_ERROR,
        Reason.QUESTION,
        f"the task needs an answer: {question.question}{offered}; say the task again with it",
        question=question.question,
        choices=choices,
    )
    return RunEnd(
        partial={"question": question.question, "choices": choices, **(partial or {})},
        status="incomplete",
        stop_reason="question",
        error=failure,
        warnings=(*warnings, UNANSWERED),
    )

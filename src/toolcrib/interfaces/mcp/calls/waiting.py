"""What a waiting run asks of a client: of the person (elicitation), of its model (sampling), of itself (roots).

Clients of protocol revision 2026-07-28 get the forms as an `input_required` result, and send the call again with the
answers and with the run in `request_state`. Clients of older revisions get requests during the call. What the state
names is checked like every other access to a run, so it needs no signature.

A question can always be answered. A decision is asked for only if the operator lets callers decide on their own calls
(`TOOLCRIB_SERVER_SELF_APPROVAL`); else it waits in the approval inbox.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, assert_never, cast

import mcp_types as types
import orjson

from toolcrib.contracts import Json, JsonObject, JsonSchema, OpenQuestion, WaitingApproval
from toolcrib.contracts.runs.executions import AskedOf
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.mcp.results import as_text

_LONGEST_INPUT: Final = 2_000
"""Characters of a call's arguments in a form."""
_MAX_TOKENS: Final = 1_000
_FIELDS: Final = frozenset({"string", "number", "integer", "boolean", "array"})
"""Types of the fields that a form may have; a list is a choice of several."""
_STATE: Final = re.compile(r"(?P<run_id>run_[0-9a-z]{1,64})(?:/[0-9a-f]{16})?")


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What a run asks."""

    kind: Literal["question", "approval"]
    key: str
    """The position of a question, or the id of an approval."""
    message: str
    schema: JsonSchema
    """Of the answer: an object."""
    wraps: bool | None = None
    """Whether the object has the answer in `answer`, as JSON; if not, it is the answer. Null for words and choices."""

    name: str | None = None
    """Under which a client answers; null for the key."""

    asked_of: AskedOf = "person"
    """Who answers."""
    max_tokens: int | None = None
    """Of the answer of a model."""

    @property
    def request_key(self) -> str:
        """The key of the request and of its response."""
        return self.name or self.key

    def request(self) -> types.InputRequest:
        """The form as a request to a client."""
        match self.asked_of:
            case "client_model":
                said = types.SamplingMessage(role="user", content=types.TextContent(text=self.message))
                wanted = types.CreateMessageRequestParams(messages=[said], max_tokens=self.max_tokens or _MAX_TOKENS)
                return types.CreateMessageRequest(params=wanted)
            case "client_roots":
                return types.ListRootsRequest()
            case "person":
                form = types.ElicitRequestFormParams(message=self.message, requested_schema=self.schema)
                return types.ElicitRequest(params=form)
            case _:
                assert_never(self.asked_of)

    def answer_in(self, given: types.InputResponse) -> str | None:
        """The answer that a response has, as text; null if it is a response to something else."""
        match given:
            case types.ElicitResult() if self.asked_of == "person":
                content = cast("JsonObject", given.content or {})
                if self.wraps is None:
                    return str(content.get("answer") or content.get("choice") or "")
                return orjson.dumps(content.get("answer") if self.wraps else content).decode()
            case types.CreateMessageResult() | types.CreateMessageResultWithTools() if self.asked_of == "client_model":
                parts = given.content if isinstance(given.content, list) else [given.content]
                return "".join(part.text for part in parts if isinstance(part, types.TextContent))
            case types.ListRootsResult() if self.asked_of == "client_roots":
                roots = [
                    root.model_dump(mode="json", include={"uri", "name"}, exclude_none=True) for root in given.roots
                ]
                return orjson.dumps(roots).decode()
            case _:
                return None


async def forms_of(crib: ActingCrib, run_id: str, *, self_approval: bool) -> Sequence[AnswerForm]:
    """What a run asks that the client may answer.

    Args:
        crib: Acts as the client's principal.
        run_id: The run.
        self_approval: Whether its starter may decide on its calls.
    """
    state = await crib.executions.respond(run_id)
    if state.question is not None:
        return [_ask(question) for question in (state.question, *state.question.together_with)]
    return [_decide(state.approvals[0])] if state.approvals and self_approval else []


async def explain_wait(crib: ActingCrib, result: Result) -> str:
    """What a client is told of a run that waits and that it cannot carry on."""
    state = await crib.executions.respond(result.run_id)
    later = f"Do not call the tool again; the resource toolcrib://runs/{result.run_id} has the result later."
    if state.question is not None:
        choices = "".join(f"\n- {choice.label}" for choice in state.question.choices)
        return f"The tool asks: {state.question.question}{choices}\nRun {result.run_id} waits for the answer. {later}"
    if state.approvals:
        approval = state.approvals[0]
        return f"{approval.name} waits for a person to approve it (approval {approval.approval_id}). {later}"
    return "; ".join((f"Run {result.run_id}: {result.status.replace('_', ' ')}.", *result.warnings, later))


async def answer(crib: ActingCrib, run_id: str, form: AnswerForm, given: types.InputResponse) -> bool:
    """Leave an answer for a run; false if the form was closed without one, or the response is to something else.

    Args:
        crib: Acts as the client's principal.
        run_id: The run.
        form: What was asked.
        given: What came back.

    Raises:
        Conflict: It was answered meanwhile.
        InvalidInput: The answer is empty, or too long.
        PermissionDenied: The principal may not decide.
    """
    text = form.answer_in(given)
    if text is None or (isinstance(given, types.ElicitResult) and given.action == "cancel"):
        return False
    if form.kind == "approval":
        content = cast("JsonObject", given.content or {}) if isinstance(given, types.ElicitResult) else {}
        accepts = isinstance(given, types.ElicitResult) and given.action == "accept"
        approve = accepts and content.get("decision") == "approve"
        reason = content.get("reason")
        await crib.approvals.decide(form.key, approve=approve, reason=str(reason) if reason else None, allow_self=True)
    elif isinstance(given, types.ElicitResult) and given.action == "decline":
        await crib.cancel(run_id, reason="the user declined to answer")
    else:
        await crib.questions.leave(run_id, text, position=form.key)
    return True


def state_of(run_id: str, form: AnswerForm) -> str:
    """The state of a request: the run, and a digest of what it asks."""
    return f"{run_id}/{sha256(form.key.encode()).hexdigest()[:16]}"


def run_of_state(state: str) -> str | None:
    """The run that the state of a request names; null if it names none."""
    found = _STATE.fullmatch(state)
    return None if found is None else found["run_id"]


def _ask(question: OpenQuestion) -> AnswerForm:
    if question.asked_of != "person":
        asked: dict[str, Any] = {
            "asked_of": question.asked_of,
            "max_tokens": question.max_tokens,
            "name": question.name,
        }
        return AnswerForm("question", question.position, question.question, {}, **asked)
    wanted = None if question.answer_schema is None else _flat(question.answer_schema)
    if wanted is not None:
        wraps = wanted.get("type") != "object"
        schema = {"type": "object", "properties": {"answer": wanted}, "required": ["answer"]} if wraps else wanted
        return AnswerForm("question", question.position, question.question, schema, wraps, question.name)
    properties: JsonObject = {"answer": {"type": "string", "title": "Answer", "description": "In your own words"}}
    if question.choices:
        choices: Json = [{"const": choice.value, "title": choice.label} for choice in question.choices]
        properties = {"choice": {"type": "string", "title": "Choice", "oneOf": choices}, **properties}
    required: Json = [] if question.choices else ["answer"]
    assumed = "".join(f"\n{each}" for each in question.assumptions)
    schema: JsonSchema = {"type": "object", "properties": properties, "required": required}
    return AnswerForm("question", question.position, question.question + assumed, schema, name=question.name)


def _decide(approval: WaitingApproval) -> AnswerForm:
    given = as_text(orjson.loads(orjson.dumps(approval.input)))
    shown = given if len(given) <= _LONGEST_INPUT else f"{given[:_LONGEST_INPUT]}… ({len(given)} characters)"
    message = "\n".join(filter(None, (f"May {approval.name} run?", approval.message, shown)))
    properties: JsonObject = {
        "decision": {"type": "string", "title": "Decision", "enum": ["approve", "reject"]},
        "reason": {"type": "string", "title": "Reason", "description": "Shown to the agent"},
    }
    return AnswerForm(
        "approval",
        approval.approval_id,
        message,
        {"type": "object", "properties": properties, "required": ["decision"]},
    )


def _flat(schema: JsonSchema) -> JsonSchema | None:
    """A schema as forms have them, without references and nested objects; null if there is none."""
    definitions = cast("JsonObject", schema.get("$defs", {}))

    def inline(part: JsonSchema) -> JsonSchema:
        target = str(part.get("$ref", "")).removeprefix("#/$defs/")
        return {**cast("JsonSchema", definitions.get(target, {})), **{k: v for k, v in part.items() if k != "$ref"}}

    whole = {key: value for key, value in inline(schema).items() if key != "$defs"}
    if whole.get("type") != "object":
        return whole if whole.get("type") in _FIELDS else None
    fields = {name: inline(part) for name, part in cast("dict[str, JsonSchema]", whole.get("properties", {})).items()}
    return {**whole, "properties": fields} if all(part.get("type") in _FIELDS for part in fields.values()) else None

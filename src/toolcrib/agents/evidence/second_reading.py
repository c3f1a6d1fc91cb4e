"""A second reading: asks a model about values of a plan that are not literally in the task.

One request has all uncertain values. The model gets the task and what was read from it, not the plan, and answers each
point with words of the task or with `no`. An answer whose words are not in the task confirms nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from toolcrib.agents.evidence.task_parts import TaskPart
from toolcrib.agents.evidence.value_sources import EvidenceSources, Finding, Judgement
from toolcrib.agents.evidence.word_matching import Passage, stands_in, words_of
from toolcrib.contracts import JsonObject, JsonSchema

SECOND_SYSTEM: Final = (
    "You check what somebody has read from a task, by the words of the task alone. A condition says which items are "
    "meant before the change; what the items get is a change and no condition. Where the words may mean something else "
    "as well, or nobody can know, the answer is unclear."
)
_QUESTION: Final = """Task: {task}
{today}
This was read from it:
{read}

Answer each point. In "words", copy the words of the task that say it; leave them empty if none do.
{points}"""

_MOST_POINTS: Final = 12
_MOST_CHOICES: Final = 40
_LONGEST: Final = 160


@dataclass(frozen=True, slots=True)
class Point:
    """Something that is asked about."""

    key: str
    """Its name in the answer: `v1` for a value, `w1` for words."""
    subject: Finding | str
    """A value, or words of the task that no value carries."""
    text: str


@dataclass(slots=True)
class Known:
    """What readers and people have said so far of what is not evident."""

    confirmed: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    denied: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """With what the task says instead, as far as it was told."""
    idle: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """Words that say nothing that is not in the plan."""
    missing: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """Words that say something that the plan does not have, with what it is."""
    unclear: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """Values that may be meant or not."""
    answers: Passage | None = None
    """What a person has answered."""

    def apply_to(self, judged: Judgement) -> Judgement:
        """A judgement without what is known to be right."""
        findings = tuple(self._update_finding(found) for found in judged.findings)
        denied = (words for words in judged.idle if words_of(words) in self.missing)
        left = (*(words for words in judged.left if words_of(words) not in self.idle), *denied)
        unused = tuple(claim for claim in judged.unused if words_of(claim.words) not in self.idle)
        return Judgement(findings, left, judged.idle, unused, judged.unread)

    def _update_finding(self, found: Finding) -> Finding:
        """A value with what was said of it; what names a record is taken from nobody but a person."""
        if found.state == "evident":
            return replace(found, state="unsure") if value_key(found) in self.denied else found
        if self.answers is not None and stands_in(words_of(found.shown), self.answers.words):
            return replace(found, state="evident", source="answer")
        if found.state in {"unsure", "unsaid"} and value_key(found) in self.confirmed:
            return replace(found, state="evident", source="second reading")
        return found


def value_key(found: Finding) -> tuple[str, ...]:
    """What tells a value from others: its role, its field and what it is called."""
    return (found.role, found.field, found.leaf.comparison, *words_of(found.shown))


def points_of(judged: Judgement, known: Known) -> list[Point]:
    """What a second reader can tell of a plan, as far as it was not asked before."""
    points: list[Point] = []
    keys_asked: set[tuple[str, ...]] = set()
    for found in judged.open:
        key = value_key(found)
        if found.state not in {"unsure", "unsaid"} or key in keys_asked | known.denied.keys() | known.unclear:
            continue
        keys_asked.add(key)
        points.append(Point(f"v{len(points) + 1}", found, _about_value(found)))
    for words in dict.fromkeys((*judged.left, *(claim.words for claim in judged.unused))):
        if words_of(words) not in keys_asked | known.missing.keys():
            keys_asked.add(words_of(words))
            points.append(_about_words(words, len(points) + 1))
    for found in judged.findings if points else ():  # a comparison cannot be told from its words, so it is asked too
        key = value_key(found)
        if found.state == "evident" and found.role == "condition" and key not in keys_asked | known.confirmed:
            keys_asked.add(key)
            points.append(Point(f"v{len(points) + 1}", found, _about_value(found)))
    for words in judged.idle if points else ():
        if words_of(words) not in keys_asked | known.idle | known.missing.keys():
            keys_asked.add(words_of(words))
            points.append(_about_words(words, len(points) + 1))
    return points[:_MOST_POINTS]


def second_question(judged: Judgement, points: Sequence[Point], sources: EvidenceSources) -> str:
    """Asks all points at once."""
    read = "\n".join(_read(judged.findings)) or "- nothing"
    questions = "\n".join(f"{point.key}: {point.text}" for point in points)
    today = f"Today is {sources.today:%A, %Y-%m-%d}.\n"
    return _QUESTION.format(task=sources.task.text, today=today, read=read, points=questions)


def second_schema(points: Sequence[Point]) -> JsonSchema:
    """The JSON Schema of the answers, by the names of the points."""
    return {
        "type": "object",
        "properties": {
            point.key: _WORDS_ANSWER if isinstance(point.subject, str) else _VALUE_ANSWER for point in points
        },
        "required": [point.key for point in points],
        "additionalProperties": False,
    }


def learn(known: Known, points: Sequence[Point], answer: JsonObject, sources: EvidenceSources) -> None:
    """Take what a second reader has said."""
    for point in points:
        given = cast("JsonObject", answer[point.key])
        if isinstance(point.subject, str):
            key = words_of(point.subject)
            if given["says"] == "missing":
                known.missing[key] = str(given.get("meaning") or "")
            else:
                known.idle.add(key)
            continue
        key, stated = value_key(point.subject), given["stated"]
        shown = sources.task.find(given["words"]) is not None or bool(point.subject.words and stated == "yes")
        if stated == "yes" and shown:
            known.confirmed.add(key)
        elif stated == "unclear":
            known.unclear.add(key)
        else:
            instead = str(given.get("instead") or "")
            known.denied[key] = instead
            instead_key = (*key[:3], *words_of(instead))
            if instead and instead_key != key:
                known.confirmed.add(instead_key)


_WORDS: Final[JsonSchema] = {"type": "string", "maxLength": _LONGEST}
_VALUE_ANSWER: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "words": _WORDS,
        "stated": {"type": "string", "enum": ["yes", "no", "unclear"]},
        "instead": {
            "type": ["string", "null"],
            "maxLength": _LONGEST,
            "description": "If no: the value that is meant.",
        },
    },
    "required": ["words", "stated"],
    "additionalProperties": False,
}
_WORDS_ANSWER: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "says": {
            "type": "string",
            "enum": ["nothing", "already read", "missing"],
            "description": "nothing: neither which items nor what they get. already read: what is listed above. "
            "missing: a condition or a change that is not listed.",
        },
        "meaning": {"type": ["string", "null"], "maxLength": _LONGEST, "description": "If missing: what."},
    },
    "required": ["says"],
    "additionalProperties": False,
}


def _about_words(words: str, number: int) -> Point:
    return Point(f"w{number}", words, f'Nothing of it carries "{words}". What do these words say?')


def _about_value(found: Finding) -> str:
    says = (
        f"Does the task say that only items with {describe_finding(found)} are meant?"
        if found.role == "condition"
        else f"Does the task say that {found.field} is to be {found.shown!r}?"
    )
    quoted = f' Quoted for it: "{found.words}".' if found.words else ""
    choices = found.choices[:_MOST_CHOICES]
    among = f" Possible values: {', '.join(choices)}." if choices else ""
    return f"{says}{quoted}{among}"


def _read(findings: Sequence[Finding]) -> Iterator[str]:
    for found in findings:
        quoted = f' ("{found.words}")' if found.words else ""
        yield f"- {found.role}: {describe_finding(found)}{quoted}"


def describe_finding(found: Finding) -> str:
    """A value with its field, and how it is compared as far as the tool's own words say it."""
    return " ".join(filter(None, (found.field, found.leaf.comparison, repr(found.shown))))


def advice(judged: Judgement, known: Known) -> list[str]:
    """What is wrong with a plan, for the model that has made it."""
    return [
        *(_value_advice(found, known) for found in judged.open),
        *(_words_advice(words, known) for words in judged.left),
        *(_claim_advice(claim) for claim in judged.unused),
    ]


def unclear_in(judged: Judgement) -> list[str]:
    """What is in doubt of a plan, for a person."""
    return [
        *(_value_doubt(found) for found in judged.open),
        *(f'it is not clear what "{words}" asks for' for words in judged.left),
        *(f'it is not clear what to do with "{claim.words}"' for claim in judged.unused),
    ]


def _value_doubt(found: Finding) -> str:
    quotation = f'"{found.words}"' if found.words else "the task"
    if found.state == "ambiguous":
        return f"{quotation} may mean {' or '.join(found.others)}"
    if found.state == "invented":
        return f"it is not clear which record is meant: {found.field} {found.shown} is not in the task"
    return f"{quotation} does not clearly say {describe_finding(found)}"


def _value_advice(found: Finding, known: Known) -> str:
    where = f"{found.step}: {found.role} {found.field} {found.shown!r}"
    instead = known.denied.get(value_key(found), "")
    match found.state:
        case "invented":
            return f"{where} {found.why or 'comes from nowhere'}; take it from a result of an earlier step, or ask"
        case "ambiguous":
            return f"{where} may be {' or '.join(found.others)}; ask which is meant"
        case _:
            correction = f"; the task says {instead!r}" if instead else "; leave it out, or use what the task says"
            return f"{where} is not what the task says{correction}"


def _words_advice(words: str, known: Known) -> str:
    meaning = known.missing.get(words_of(words), "")
    note = f" ({meaning})" if meaning else ""
    return f'"{words}"{note} is carried by no value; select by it, or set it, if it says which items or what they get'


def _claim_advice(claim: TaskPart) -> str:
    return f'"{claim.words}" is said to be a {claim.use} ({claim.value!r}), but no step uses it'

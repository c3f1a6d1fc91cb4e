"""The reading of a task in a plan: the task's parts, and the meaning of each.

    "reading": [
        {"words": "Mark", "use": "request"},
        {"words": "Globex's", "use": "condition", "value": "Globex"},
        {"words": "proposals", "use": "condition", "value": "Proposal sent"},
        {"words": "as won", "use": "change", "value": "Closed won"},
        {"words": "please", "use": "none"}]

A model that reads before it plans forgets fewer conditions, and the reading can be checked against the task. Words of
the author's documentation count too. A date relative to today has a `how`, see `quantities`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from toolcrib.agents.evidence.plan_schema import READING
from toolcrib.contracts import Json, JsonObject, JsonSchema

Use: TypeAlias = Literal["condition", "change", "request", "none"]
"""What words are for: they say which items are meant, what these get, what is wanted at all, or none of it."""

_LONGEST: Final = 300
"""Characters of a quotation; models that quote more repeat themselves."""


@dataclass(frozen=True, slots=True)
class TaskPart:
    """What a plan says of some words."""

    words: str
    use: Use
    value: Json = None
    how: str = ""
    """The calculation that gives the value, if it is a day that follows from today's."""

    @property
    def carries(self) -> bool:
        """Whether they are said to hold a value."""
        return self.use in {"condition", "change"}


def reading_schema() -> JsonSchema:
    """The JSON Schema of a reading."""
    return {
        "type": "array",
        "description": "The whole task from left to right, part by part: every word belongs to a part.",
        "items": {
            "type": "object",
            "properties": {
                "words": {"type": "string", "maxLength": _LONGEST, "description": "Exact words of the task."},
                "use": {
                    "type": "string",
                    "enum": ["condition", "change", "request", "none"],
                    "description": "condition: which items are meant. change: what they get. request: what is wanted. "
                    "none: says nothing of it, such as a greeting or a reason.",
                },
                "value": {
                    "type": ["string", "number", "boolean", "null"],
                    "description": "Of a condition or a change, as in the inputs below.",
                },
                "how": {
                    "type": "string",
                    "maxLength": 60,
                    "description": "Of a day that follows from today's: today + 1 week, friday; today, end of month.",
                },
            },
            "required": ["words", "use"],
            "additionalProperties": False,
        },
    }


def read_claims(plan: JsonObject) -> tuple[TaskPart, ...]:
    """What a plan that met its schema says of the task's words."""
    entries: Iterable[JsonObject] = cast("list[JsonObject]", plan.get(READING) or [])
    return tuple(
        TaskPart(entry["words"], entry["use"], entry.get("value"), str(entry.get("how") or "")) for entry in entries
    )

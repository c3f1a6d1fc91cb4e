"""Meetings, found by nested conditions `{field: {op: value}}` and changed one by one; rooms and people are ids."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel

from tests.corpus import records
from tests.corpus.corpus import Action, Change, Condition, Op, Value
from tests.corpus.systems.base import System
from toolcrib import FunctionTool, tool
from toolcrib.contracts import Json, JsonObject, JsonSchema, ReferenceSource

CLIENTS: Final = (
    *("Brightline", "Brightline Media", "Sunrise Bank", "Kestrel Air", "Polar Foods"),
    *("Medina Clinics", "Orchard Hotels", "Delta Freight", "Halo Games", "Vesta Energy"),
)
KINDS: Final = ("Stand-up", "Review", "Interview", "Demo", "Planning", "One-on-one", "Training")
STATUSES: Final = ("Tentative", "Confirmed", "Postponed")
ROOMS: Final = {
    "Aurora": "rm-3f",
    "Borealis": "rm-3g",
    "Cascade": "rm-1b",
    "Dune": "rm-0d",
    "Everest": "rm-8a",
    "Fjord": "rm-2c",
    "Video call": "rm-vc",
}
ORGANIZERS: Final = {
    name: 61 + number * 4
    for number, name in enumerate(
        (
            *("Alan Abara", "Carmen Castro", "Chen Lopez", "Diego Rossi", "Elif Marek", "Freya Jansen", "Grace Kim"),
            *(
                "Hugo Bianchi",
                "Hugo Sato",
                "Lena Nakamura",
                "Maya Quinn",
                "Omar Haddad",
                "Petra Kowalski",
                "Petra Lopez",
            ),
            *("Sam Van Dijk", "Uma Patel"),
        )
    )
}

Kind: TypeAlias = Literal["Stand-up", "Review", "Interview", "Demo", "Planning", "One-on-one", "Training"]
Status: TypeAlias = Literal["Tentative", "Confirmed", "Postponed"]

_WORDS: Final[Mapping[Op, str]] = {
    "is": "equals",
    "on": "equals",
    "is_not": "not",
    "contains": "contains",
    "more_than": "gt",
    "after": "gt",
    "at_least": "gte",
    "on_or_after": "gte",
    "less_than": "lt",
    "before": "lt",
    "at_most": "lte",
    "on_or_before": "lte",
}
_OPS: Final[Mapping[str, Op]] = {
    "equals": "is",
    "not": "is_not",
    "contains": "contains",
    "gt": "more_than",
    "gte": "at_least",
    "lt": "less_than",
    "lte": "at_most",
}


def _condition_schema(value: JsonSchema, *words: str) -> JsonSchema:
    return {"type": "object", "properties": dict.fromkeys(words, value), "additionalProperties": False}


def _search_schema() -> JsonSchema:
    text: JsonSchema = {"type": "string"}
    ordered = ("equals", "not", "gt", "gte", "lt", "lte")
    number, day = _condition_schema({"type": "integer"}, *ordered), _condition_schema(text, *ordered)
    fields: JsonObject = {
        "title": _condition_schema(text, "equals", "contains"),
        "client": _condition_schema(text, "equals", "not"),
        "kind": _condition_schema({"type": "string", "enum": list(KINDS)}, "equals", "not"),
        "status": _condition_schema({"type": "string", "enum": list(STATUSES)}, "equals", "not"),
        "room": _condition_schema(text, "equals", "not"),
        "organizer": _condition_schema({"type": "integer"}, "equals", "not"),
        "day": day,
        "start": day,
        "minutes": number,
        "seats": number,
    }
    where: JsonSchema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {"type": "object", "properties": {"where": where}, "required": ["where"], "additionalProperties": False}


class MeetingChanges(BaseModel):
    """What can be changed of a meeting."""

    room: str | None = None
    day: str | None = None
    start: str | None = None
    minutes: int | None = None
    status: Status | None = None
    kind: Kind | None = None
    organizer: int | None = None


class Meetings(System):
    """The calendar of an office."""

    name = "calendar"
    fields = (
        records.Field("title", "text"),
        records.Field("client", "label", CLIENTS),
        records.Field("kind", "label", KINDS),
        records.Field("room", "label", tuple(ROOMS)),
        records.Field("organizer", "label", tuple(ORGANIZERS)),
        records.Field("status", "label", STATUSES),
        records.Field("day", "day"),
        records.Field("start", "time"),
        records.Field("minutes", "number"),
        records.Field("seats", "number"),
    )
    comparisons: ClassVar = _WORDS
    values: ClassVar = {"room": ROOMS, "organizer": ORGANIZERS}
    references = (
        ReferenceSource(name="rooms", tool="list_rooms", value="code", label="name", applies_to=("room",)),
        ReferenceSource(name="organizers", tool="list_organizers", label="name", applies_to=("organizer",)),
    )
    listed = frozenset({"room", "organizer"})
    most = 20
    """Each meeting is a call of its own, and a run has 25."""

    @classmethod
    def new_id(cls, number: int) -> Value:
        """Ids are opaque."""
        return f"mtg_{(number * 7919 + 4099) % 65521:04x}"

    def steps(self, action: Action) -> tuple[str, str]:
        """One tool for each action."""
        return "find_meetings", {"cancel": "cancel_meeting", "create": "create_meeting"}.get(action, "change_meeting")

    def selecting(self, where: Sequence[Condition], *, spoken: bool) -> JsonObject:
        """Conditions by field and comparison."""
        fields: dict[str, JsonObject] = {}
        for one in where:
            said = fields.setdefault(one.field, {})
            if _WORDS[one.op] in said:
                msg = f"two conditions {one.op!r} on {one.field!r} cannot be said"
                raise ValueError(msg)
            said[_WORDS[one.op]] = self.own(one.field, one.value, spoken=spoken)
        return {"where": fields}

    def writing(self, action: Action, changes: Sequence[Change], ids: Sequence[Json], *, spoken: bool) -> JsonObject:
        """One meeting's id, and its changes beside it."""
        values = {one.field: self.own(one.field, one.value, spoken=spoken) for one in changes}
        if action == "create":
            return values
        return {"id": ids[0]} if action == "cancel" else {"id": ids[0], "changes": values}

    def make_tools(self) -> Sequence[FunctionTool[..., Any]]:
        """Find, change, cancel, create, and what lists valid values."""

        @tool(side_effects="reads", input_schema=_search_schema())
        async def find_meetings(where: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
            """Find meetings that meet all conditions."""
            return self.find(
                [
                    Condition(field, _OPS[word], self.meant(field, value))
                    for field, said in where.items()
                    for word, value in said.items()
                ]
            )

        @tool(side_effects="writes", deletes=False, idempotent=True)
        async def change_meeting(id: str, changes: MeetingChanges) -> dict[str, Any]:  # noqa: A002 - its name in the API
            """Change one meeting."""
            return self.change([id], changes.model_dump(exclude_none=True))

        @tool(side_effects="writes", deletes=True, idempotent=True)
        async def cancel_meeting(id: str) -> dict[str, Any]:  # noqa: A002 - its name in the API
            """Cancel one meeting; everybody is told, and it is gone."""
            return self.remove([id])

        return (find_meetings, change_meeting, cancel_meeting, *self._more_tools())

    def _more_tools(self) -> Sequence[FunctionTool[..., Any]]:
        @tool(side_effects="writes", deletes=False)
        async def create_meeting(
            title: str,
            kind: Kind,
            day: str,
            start: str,
            *,
            client: str | None = None,
            room: str | None = None,
            organizer: int | None = None,
            minutes: int | None = None,
            status: Status | None = None,
        ) -> dict[str, Any]:
            """Book a meeting."""
            given: JsonObject = {"title": title, "kind": kind, "day": day, "start": start, "client": client}
            return self.create({**given, "room": room, "organizer": organizer, "minutes": minutes, "status": status})

        @tool(side_effects="reads")
        async def list_rooms() -> list[dict[str, Any]]:
            """The rooms that can be booked."""
            return [{"code": one["id"], "name": one["label"]} for one in self.listing("room")]

        @tool(side_effects="reads")
        async def list_organizers() -> list[dict[str, Any]]:
            """The people who organize meetings."""
            return [{"id": one["id"], "name": one["label"]} for one in self.listing("organizer")]

        return create_meeting, list_rooms, list_organizers

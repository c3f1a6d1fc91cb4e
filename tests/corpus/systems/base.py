"""What the four systems in memory have in common: records by id, the names of their fields, and how a plan says things.

Records are held as the corpus speaks: its field names, and labels. Each system shows and takes them in its own way.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from tests.corpus.corpus import Action, Change, Condition, Op, SystemName, Value, load
from tests.corpus.records import Field, make_records, matching
from toolcrib import FunctionTool
from toolcrib.contracts import InvalidInput, Json, JsonObject, ReferenceSource
from toolcrib.core.providers import ReferenceList, read_reference

_READ_AT: Final = datetime(2026, 3, 11, 8, tzinfo=UTC)
_RECORDS: dict[SystemName, list[JsonObject]] = {}


class System(ABC):
    """A system in memory with its tools, as it is before a task."""

    name: ClassVar[SystemName]
    fields: ClassVar[tuple[Field, ...]]
    names: ClassVar[Mapping[str, str]] = {}
    """Its own names of fields, where they are not those of the corpus."""
    values: ClassVar[Mapping[str, Mapping[str, str | int]]] = {}
    """Its own values by label, by field, where they are not the labels."""
    comparisons: ClassVar[Mapping[Op, str]] = {}
    """Its own words for comparisons, where its fields' names do not say them."""
    references: ClassVar[tuple[ReferenceSource, ...]] = ()
    """Its lists of valid values."""
    listed: ClassVar[frozenset[str]] = frozenset()
    """The fields whose values a list has; labels may be written for them."""
    most: ClassVar[int] = 40
    """Records that a task may mean."""

    def __init__(self) -> None:
        self.records: dict[Value, JsonObject] = {}
        self.reset()
        self.tools: Sequence[FunctionTool[..., Any]] = self.make_tools()

    def reset(self) -> None:
        """Have the records as they were at first."""
        self.records = {record["id"]: dict(record) for record in self._made()}

    @classmethod
    def _made(cls) -> list[JsonObject]:
        if cls.name not in _RECORDS:
            made = make_records(cls.fields, load(cls.name), seed=len(cls.fields), most=cls.most)
            _RECORDS[cls.name] = [record | {"id": record.get("id") or cls.new_id(n)} for n, record in enumerate(made)]
        return _RECORDS[cls.name]

    # What a system is -------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def new_id(cls, number: int) -> Value:
        """The id of the record with a number, from 0."""

    @abstractmethod
    def make_tools(self) -> Sequence[FunctionTool[..., Any]]:
        """Its tools."""

    @abstractmethod
    def steps(self, action: Action) -> tuple[str, str]:
        """The tool that finds records and the one that does what is wanted; a task that only reads has both too."""

    # How a plan says things -------------------------------------------------------------------------------------------

    @abstractmethod
    def selecting(self, where: Sequence[Condition], *, spoken: bool) -> JsonObject:
        """The input that finds the records which meet all conditions.

        Args:
            where: The conditions.
            spoken: Whether labels stand where the list of valid values has them.
        """

    @abstractmethod
    def writing(self, action: Action, changes: Sequence[Change], ids: Sequence[Json], *, spoken: bool) -> JsonObject:
        """The input that changes, deletes or creates; `ids` are those of the records, or one reference to an item's."""

    def own(self, field: str, value: Json, *, spoken: bool = False) -> Json:
        """A value as an input has it."""
        return value if spoken and field in self.listed else self.values.get(field, {}).get(str(value), value)

    def called(self, field: str) -> str:
        """The system's own name of a field."""
        return self.names.get(field, field)

    async def lists(self) -> list[ReferenceList]:
        """Its lists of valid values, as its tools bring them now."""
        tools = {tool.definition.name: tool for tool in self.tools}
        return [
            read_reference(source, await tools[source.tool or ""].function(), fetched_at=_READ_AT)
            for source in self.references
        ]

    # What tools do ----------------------------------------------------------------------------------------------------

    def find(self, where: Sequence[Condition]) -> list[JsonObject]:
        """The records that meet all conditions, as the system shows them."""
        return [self._shown(record) for record in matching(where, list(self.records.values()))]

    def change(self, names: Iterable[Value], changes: Mapping[str, Json]) -> JsonObject:
        """Give records other values, by the system's own names; all of them or none."""
        found = self._all(names)
        meant = self.meant_all(changes)
        for record in found:
            record.update(meant)
        return {"changed": len(found)}

    def remove(self, names: Iterable[Value]) -> JsonObject:
        """Take records away; all of them or none."""
        found = self._all(names)
        for record in found:
            del self.records[record["id"]]
        return {"deleted": len(found)}

    def create(self, values: Mapping[str, Json]) -> JsonObject:
        """Add a record, by the system's own names."""
        made: JsonObject = {field.name: None for field in self.fields} | self.meant_all(values)
        made["id"] = self.new_id(len(self.records))
        self.records[made["id"]] = made
        return self._shown(made)

    def meant(self, field: str, value: Json) -> Json:
        """The label of one of the system's own values."""
        return next((label for label, own in self.values.get(field, {}).items() if own == value), value)

    def meant_all(self, values: Mapping[str, Json]) -> JsonObject:
        """The corpus' fields and labels of the system's own, without those that say nothing."""
        fields = {self.called(field.name): field.name for field in self.fields}
        return {fields[name]: self.meant(fields[name], value) for name, value in values.items() if value is not None}

    def field_called(self, name: str) -> str:
        """The corpus' field of one of the tools' names; empty if it is none."""
        fields = {self.called(field.name): field.name for field in self.fields}
        return fields.get(name, "")

    def ops_called(self, word: str) -> frozenset[Op]:
        """How one of the tools' words compares; empty if it is no such word."""
        return frozenset(op for op, called in self.comparisons.items() if called == word)

    def listing(self, field: str) -> list[JsonObject]:
        """The valid values of a field, as a tool lists them."""
        return [{"id": value, "label": label} for label, value in self.values[field].items()]

    def _all(self, names: Iterable[Value]) -> list[JsonObject]:
        wanted = list(names)
        if unknown := [name for name in wanted if name not in self.records]:
            raise InvalidInput(f"{self.name} has no record {unknown[0]!r}; nothing was changed")
        return [self.records[name] for name in wanted]

    def _shown(self, record: JsonObject) -> JsonObject:
        own = {self.called(name): self.own(name, value) for name, value in record.items() if name != "id"}
        return {"id": record["id"], **own}

"""The bases of contracts (`Contract` and `Record`), the scalar types of JSON, JSON pointers and retry policies.

A `Contract` is a pydantic model, for what callers write: it is checked when it is made. A `Record` is a struct, for
what this library makes: it is checked only where it is read. All JSON is snake_case. Times are UTC with microseconds
(RFC 3339). Money is US dollars: an exact decimal in Python, a number in JSON.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from math import isfinite
from operator import attrgetter
from threading import Lock
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_type_hints,
)

import msgspec
import orjson
from msgspec import NODEFAULT, field
from msgspec.structs import asdict, fields, replace
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic_core import core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic.fields import FieldInfo

Json: TypeAlias = Any
"""A JSON value: object, array, string, number, boolean or null."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object."""

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema document, dialect 2020-12."""


def release() -> str:
    """The version of this library: `0.1.0`; `source` where only its source is on the path and nothing is installed."""
    from importlib import metadata  # noqa: PLC0415 - takes long, and few ask

    try:
        return metadata.version("toolcrib")
    except metadata.PackageNotFoundError:
        return "source"


def format_timestamp(moment: datetime) -> str:
    """Write a moment as RFC 3339 in UTC with six fractional digits: `2026-01-31T12:00:00.000000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        msg = f"timestamp {moment.isoformat()!r} has no time zone; write it in UTC, e.g. {moment.isoformat()}Z"
        raise ValueError(msg)
    return moment.astimezone(UTC)


Timestamp: TypeAlias = Annotated[
    datetime,
    AfterValidator(_in_utc),
    PlainSerializer(format_timestamp, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A moment in UTC, microsecond resolution."""

Usd: TypeAlias = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""An amount of US dollars. Where null is allowed it means unknown, never free."""


class Contract(BaseModel):
    """Base of all contracts: unknown fields are refused, instances are immutable."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        defer_build=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class RecordType(msgspec.StructMeta):
    """The type of `Record` and its subclasses: their instances are immutable, and nothing for the garbage collector."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "RecordType":
        """Make a subclass, with the options of `msgspec.Struct`."""
        keeps_more = any(base.__struct_config__.dict for base in bases if isinstance(base, RecordType))
        options = {"frozen": True, "kw_only": True, "gc": keeps_more, "forbid_unknown_fields": True, **options}
        return super().__new__(mcs, name, bases, namespace, **options)

    @property
    def model_fields(cls) -> "dict[str, FieldInfo]":
        """The fields by name, as those of a `Contract`."""
        return model_of(cast("type[Record]", cls)).model_fields


class Record(msgspec.Struct, metaclass=RecordType):
    """Base of the contracts that this library makes itself: what happened, and what was decided.

    Values are not checked where one is made, and are where it is read from outside, as those of a `Contract` are. In
    pydantic models, it may be used like a `Contract`.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: "GetCoreSchemaHandler") -> core_schema.CoreSchema:
        """The schema of a contract with the same fields."""
        model = model_of(cls)

        def read(value: object, check: Callable[[object], BaseModel]) -> Record:
            return value if isinstance(value, cls) else cls.of_checked(value, check(value))

        def show(value: Record, write: Callable[[BaseModel], Any]) -> Any:
            return write(_assemble(model, asdict(value)))

        inner = handler.generate_schema(model)
        shown = core_schema.wrap_serializer_function_ser_schema(show, schema=inner)
        return core_schema.no_info_wrap_validator_function(read, inner, serialization=shown)

    @classmethod
    def of_checked(cls, value: object, checked: BaseModel) -> Self:
        """A record of what was read from outside.

        Args:
            value: As it came.
            checked: The same, checked.
        """
        del value
        return cls(**checked.__dict__)

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """The record of a JSON object; raises `pydantic.ValidationError`."""
        return adapter_of(cls).validate_python(value)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """The record of a JSON text; raises `pydantic.ValidationError`."""
        return adapter_of(cls).validate_json(text)

    @classmethod
    def model_json_schema(cls, mode: Literal["validation", "serialization"] = "validation") -> JsonSchema:
        """Its JSON schema."""
        return adapter_of(cls).json_schema(mode=mode)

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """A copy, with other values for some of its fields."""
        return replace(self, **(update or {}))

    def model_dump(self, *, mode: Literal["json", "python"] = "python", **options: Any) -> JsonObject:
        """Its fields by name, as JSON or with Python's moments and decimals.

        Args:
            mode: Which of both.
            options: Those of pydantic: `include`, `exclude`, `exclude_defaults`…
        """
        if mode == "json" and not options:
            return orjson.loads(to_json(self))
        return adapter_of(type(self)).dump_python(self, mode=mode, **options)

    def model_dump_json(self, **options: Any) -> str:
        """Its JSON text; with the options of pydantic."""
        if options:
            return adapter_of(type(self)).dump_json(self, **options).decode()
        return to_json(self).decode()


@cache
def model_of(record: type[Record]) -> type[Contract]:
    """The contract with the fields of a record, which checks and describes what is outside."""
    hints = get_type_hints(record, include_extras=True)
    shape: dict[str, Any] = {}
    for found in fields(record):
        options: dict[str, Any] = {} if found.encode_name == found.name else {"alias": found.encode_name}
        if found.default is not NODEFAULT:
            options["default"] = found.default
        if found.default_factory is not NODEFAULT:
            options["default_factory"] = found.default_factory
        shape[found.name] = hints[found.name], Field(**options)
    return create_model(
        record.__name__, __base__=Contract, __module__=record.__module__, __doc__=record.__doc__, **shape
    )


def _assemble(model: type[Contract], values: JsonObject) -> Contract:
    """A model of the values of a record, which are not checked again."""
    made = model.__new__(model)
    _set(made, "__dict__", values)
    _set(made, "__pydantic_fields_set__", set(values))
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


_set: Final = object.__setattr__
RecordT = TypeVar("RecordT", bound=Record)


@cache
def adapter_of(record: type[RecordT]) -> TypeAdapter[RecordT]:
    """Reads and writes a kind of records as pydantic does."""
    return TypeAdapter(record)


def to_json(record: Record) -> bytes:
    """The JSON text of a record.

    Raises:
        PydanticSerializationError: It holds something that is not JSON.
    """
    for moment in _moments_of(type(record)):
        found = moment(record)
        if found is not None and not found.microsecond:
            return adapter_of(type(record)).dump_json(record)  # all six digits, which the other encoder leaves out
    try:
        return _ENCODER.encode(record)
    except (TypeError, ValueError, OverflowError):
        return adapter_of(type(record)).dump_json(record)


def read_json(record: type[RecordT], text: bytes | str) -> RecordT:
    """The record of a JSON text that was written by `to_json`, of this release or an older one.

    Raises:
        ValidationError: Of pydantic: it is no such record.
    """
    decoder = _decoder_of(record)
    try:
        return record.model_validate_json(text) if decoder is None else decoder.decode(text)
    except msgspec.DecodeError:
        return record.model_validate_json(text)  # which says what is wrong, and reads what older releases have written


def _write_contract(value: object) -> Json:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(type(value).__name__)


def _read_contract(kind: type[BaseModel], value: Json) -> BaseModel:
    return kind.model_validate(value)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_write_contract, decimal_format="number")


_MAKING: Final = Lock()


@cache
def _decoder_of(record: type[RecordT]) -> msgspec.json.Decoder[RecordT] | None:
    """Null for a record with a union of contracts in it, which only pydantic can read.

    One at a time: msgspec shares what it knows of a record between decoders, also while it is still finding it out,
    and a decoder that reads with half of it ends the process.
    """
    with _MAKING:
        try:
            return msgspec.json.Decoder(record, dec_hook=_read_contract)
        except TypeError:
            return None


@cache
def _moments_of(record: type[Record]) -> tuple[Callable[[Record], datetime | None], ...]:
    """What reads the moments in a record, and in those inside it."""
    hints = get_type_hints(record)
    found: list[Callable[[Record], datetime | None]] = []
    for name, hint in hints.items():
        kinds = (hint, *get_args(hint))
        if datetime in kinds:
            found.append(attrgetter(name))
        for kind in kinds:
            if isinstance(kind, RecordType):
                inner = cast("type[Record]", kind)
                found += [_inside(name, inner, moment) for moment in _moments_of(inner)]
    return tuple(found)


def _inside(
    name: str, kind: type[Record], moment: Callable[[Record], datetime | None]
) -> Callable[[Record], datetime | None]:
    def read(record: Record) -> datetime | None:
        part = getattr(record, name)
        return moment(part) if isinstance(part, kind) else None

    return read


def infinite_number(value: Json) -> str | None:
    """The pointer to a number that JSON cannot write, as `1e999` or NaN is read; null if there is none.

    Example:
        >>> infinite_number({"amounts": [1.5, float("inf")]})
        '/amounts/1'
    """
    rest: list[tuple[str, Json]] = [("", value)]
    while rest:
        pointer, part = rest.pop()
        if isinstance(part, float) and not isfinite(part):
            return pointer
        if isinstance(part, dict):
            named = cast("JsonObject", part).items()
            rest += [(f"{pointer}/{escape_name(str(name))}", item) for name, item in named if _may_be_infinite(item)]
        elif isinstance(part, list | tuple):
            items = cast("list[Json]", part)
            rest += [(f"{pointer}/{place}", item) for place, item in enumerate(items) if _may_be_infinite(item)]
    return None


def _may_be_infinite(value: Json) -> bool:
    return isinstance(value, float | dict | list | tuple)


_INDEX: Final = re.compile(r"[0-9]{1,9}")


def escape_name(name: str) -> str:
    """A name as it is written in a pointer: `a/b` as `a~1b`."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape_name(written: str) -> str:
    """The name that is written in a pointer: `a~1b` as `a/b`."""
    return written.replace("~1", "/").replace("~0", "~")


def pointer_names(pointer: str) -> list[str]:
    """The names in a pointer, `deals` and `0` in `/deals/0`; a `#` before it, as in a `$ref`, is passed over."""
    return [unescape_name(written) for written in pointer.removeprefix("#").split("/")[1:]]


def resolve_pointer(document: Json, pointer: str) -> Json:
    """The value at a pointer; null if there is none."""
    node = document
    for name in pointer_names(pointer):
        if isinstance(node, dict):
            node = cast("JsonObject", node).get(name)
        elif isinstance(node, list) and _INDEX.fullmatch(name):
            items = cast("list[Json]", node)
            node = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    return node


Backoff: TypeAlias = Literal["none", "linear", "exponential"]


class RetryPolicy(Contract):
    """How often a failed attempt is repeated, and how long to wait in between."""

    count: int = Field(default=0, ge=0, le=10)
    """Maximum number of retries after the first attempt."""
    backoff: Backoff = "exponential"
    base_s: float = Field(default=0.5, ge=0)
    """Seconds before the first retry."""
    max_s: float = Field(default=30.0, ge=0)
    """Maximum seconds between attempts; a longer `retry-after` of the server ends the retries."""

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after a failed attempt, unless the server asks for more.

        Args:
            attempt: Its number, from 1.
        """
        factor = {"none": 0, "linear": attempt, "exponential": 2 ** (attempt - 1)}[self.backoff]
        return min(self.base_s * factor, self.max_s)

"""Parts of messages and artifacts of A2A: text and data."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from a2a.types import Part
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from toolcrib.contracts import Json

TEXT: Final = "text/plain"
JSON: Final = "application/json"


def text_part(text: str) -> Part:
    """Text."""
    return Part(text=text, media_type=TEXT)


def data_part(value: Json) -> Part:
    """JSON."""
    return Part(data=ParseDict(value, Value()), media_type=JSON)


def words_of(parts: Iterable[Part]) -> str:
    """All text, a paragraph for each part."""
    return "\n\n".join(part.text for part in parts if part.WhichOneof("content") == "text")


def data_of(parts: Iterable[Part]) -> Sequence[Json]:
    """All data."""
    return [_plain(MessageToDict(part.data)) for part in parts if part.WhichOneof("content") == "data"]


def _plain(value: Any) -> Json:
    """JSON whose whole numbers are integers: the protocol's format has floats only."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_plain(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value

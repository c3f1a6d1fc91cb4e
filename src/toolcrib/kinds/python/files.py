"""Files that Python tools return and that agents are sent: images, sounds, documents.

Their bytes are attachments, never part of an output.
"""

import hashlib
import mimetypes
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import CoreSchema, SchemaSerializer, core_schema

from toolcrib.contracts import Attachment, FileInput, JsonObject, JsonSchema
from toolcrib.contracts.base.media import attachment_of

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

_UNKNOWN: Final = "application/octet-stream"
_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "title": "File",
    "properties": {
        "media_type": {"type": "string"},
        "bytes": {"type": "integer"},
        "url": {"type": "string"},
        "name": {"type": "string"},
    },
    "required": ["media_type", "bytes", "url"],
}


class File:
    """Bytes that a tool returns, alone or inside of other values, or that an agent is sent with a message.

    In the output they are described as `{"media_type", "bytes", "url", "name"}`; the bytes are an attachment of the
    call. MCP clients get images and sounds as such, and other files as embedded resources. Models that can read them
    are shown images, PDF files and short texts.

    Args:
        data: The bytes; a text is encoded as UTF-8.
        media_type: What they are, such as `image/png`; if null, it is told from the name.
        name: A file name, or an address that the file has elsewhere; at most 500 characters.

    Raises:
        TypeError: The data are neither bytes nor text.
        ValueError: The name is too long.

    Example:
        @tool(side_effects="reads")
        def draw_chart(company: str) -> File:
            return File(f"<svg xmlns='http://www.w3.org/2000/svg'><text>{company}</text></svg>", name="chart.svg")

        crib.add(draw_chart)
        envelope = await crib.call("draw_chart", company="Acme")
        print(envelope.output["media_type"], envelope.attachments[0].bytes)
    """

    __slots__ = ("data", "media_type", "name")

    @property
    def __pydantic_serializer__(self) -> SchemaSerializer:
        """By which pydantic serializes a file where no type hint says that there is one."""
        return _SERIALIZER

    def __init__(self, data: bytes | str, media_type: str | None = None, *, name: str | None = None) -> None:
        if not isinstance(data, bytes | bytearray | memoryview | str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"the data of a File are bytes or text, not {type(data).__name__}; use File.read(path) for a path"
            raise TypeError(msg)
        if name is not None and len(name) > 500:
            msg = f"the name of a File has at most 500 characters, not {len(name)}"
            raise ValueError(msg)
        self.data: bytes = data.encode() if isinstance(data, str) else bytes(data)
        self.media_type: str = media_type or mimetypes.guess_type(name or "")[0] or _UNKNOWN
        self.name = name

    @classmethod
    def read(cls, path: str | Path, media_type: str | None = None) -> "File":
        """A file of this machine, under its name.

        Args:
            path: Where it is.
            media_type: As for `File`.

        Raises:
            OSError: It cannot be read.

        Example:
            from pathlib import Path

            Path("report.csv").write_text("company,deals")
            print(File.read("report.csv").media_type)
        """
        place = Path(path)
        return cls(place.read_bytes(), media_type, name=place.name)

    @property
    def url(self) -> str:
        """`blob:sha256:` and the SHA-256 of the bytes."""
        return f"blob:sha256:{hashlib.sha256(self.data).hexdigest()}"

    def __repr__(self) -> str:
        return f"File({len(self.data)} bytes, {self.media_type!r}, name={self.name!r})"

    def describe(self) -> JsonObject:
        """What stands for the file in an output."""
        described: JsonObject = {"media_type": self.media_type, "bytes": len(self.data), "url": self.url}
        return described if self.name is None else {**described, "name": self.name}

    def as_attachment(self) -> Attachment:
        """The attachment that the file becomes."""
        return attachment_of(self.data, self.media_type, name=self.name)

    def as_input(self) -> FileInput:
        """The file as it comes with a message to an agent."""
        return FileInput(name=self.name, media_type=self.media_type, base64=b64encode(self.data).decode())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: "GetCoreSchemaHandler") -> CoreSchema:
        del source, handler
        return core_schema.is_instance_schema(cls, serialization=_DESCRIBED)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: "GetJsonSchemaHandler") -> JsonSchema:
        del schema, handler
        return dict(_SCHEMA)


def _describe(file: File, info: core_schema.SerializationInfo[Any]) -> JsonObject:
    """The description of a file; who serializes collects the files by a list as the context."""
    files: list[File] | None = info.context
    if files is not None:
        files.append(file)
    return file.describe()


_DESCRIBED: Final = core_schema.plain_serializer_function_ser_schema(_describe, info_arg=True)
_SERIALIZER: Final = SchemaSerializer(core_schema.any_schema(serialization=_DESCRIBED))

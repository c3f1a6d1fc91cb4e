"""Files that Python tools return."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import Crib, File, ToolContext, tool
from toolcrib.contracts import Attachment, JsonObject

PNG = b"\x89PNG\r\n\x1a\n fake"
pytestmark = pytest.mark.requirement("runtimes.files")


class Report(BaseModel):
    title: str
    chart: File

    model_config = {"arbitrary_types_allowed": True}


@tool(side_effects="none")
async def draw() -> File:
    """Draws."""
    return File(PNG, "image/png")


@tool(side_effects="none")
def report(context: ToolContext) -> Report:
    """Reports."""
    return Report(title=context.tool, chart=File(PNG, name="chart.png"))


@tool(side_effects="none")
async def mixed() -> list[Any]:
    """Text and files, one of them twice."""
    return ["See:", File(PNG, "image/png"), {"again": File(PNG, "image/png")}, File("a,b", name="data.csv")]


@tool(side_effects="none", output_schema=None)
async def untyped():
    """No type hint tells of the file."""
    return {"file": File("text", "text/plain")}


@tool(side_effects="none")
async def pages() -> AsyncIterator[File]:
    """Yields files."""
    yield File("one", "text/plain")
    yield File("two", "text/plain")


def described(media_type: str, data: bytes, **more: str) -> JsonObject:
    return {"media_type": media_type, "bytes": len(data), "url": File(data).url, **more}


async def test_bytes_are_attachments_and_the_output_describes_them():
    async with Crib("memory://") as crib:
        crib.add(draw, report, mixed, untyped, pages)
        drawn, reported = await crib.call("draw"), await crib.call("report")
        several, hidden, yielded = await crib.call("mixed"), await crib.call("untyped"), await crib.call("pages")
        result = await crib.invoke("draw", {})
        _, data = await crib.executions.read_attachment(result.run_id, File(PNG).url.removeprefix("blob:sha256:"))

    png = described("image/png", PNG)
    assert drawn.output == png
    assert drawn.attachments == (Attachment(kind="image", url=File(PNG).url, content_type="image/png", bytes=len(PNG)),)
    assert reported.output == {"title": "report", "chart": {**png, "name": "chart.png"}}
    assert [each.name for each in reported.attachments] == ["chart.png"]
    assert several.output == ["See:", png, {"again": png}, described("text/csv", b"a,b", name="data.csv")]
    assert [(each.kind, each.bytes) for each in several.attachments] == [("image", len(PNG)), ("file", 3)]
    assert hidden.output == {"file": described("text/plain", b"text")}
    assert [each.bytes for each in hidden.attachments] == [4]
    assert yielded.output == [described("text/plain", b"one"), described("text/plain", b"two")]
    assert len(yielded.attachments) == 2
    assert data == PNG


def test_a_file_says_what_it_is(tmp_path: Path):
    (tmp_path / "note.txt").write_text("Hello")
    read = File.read(tmp_path / "note.txt")

    assert (read.data, read.media_type, read.name) == (b"Hello", "text/plain", "note.txt")
    assert File(b"x").media_type == "application/octet-stream"
    assert repr(File(b"x", name="a.bin")) == "File(1 bytes, 'application/octet-stream', name='a.bin')"
    with pytest.raises(TypeError, match=r"bytes or text, not PosixPath; use File.read"):
        File(tmp_path)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="at most 500 characters, not 501"):
        File(b"x", name="n" * 501)


def test_the_schema_of_a_file_describes_it():
    schema = draw.definition.output_schema or {}
    assert schema["required"] == ["media_type", "bytes", "url"]

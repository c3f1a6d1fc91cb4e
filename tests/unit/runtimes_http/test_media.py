"""Answers that are not plain JSON: lines, forms, files, false types and odd charsets."""

import base64
import gzip
from typing import Any

import pytest
from aiohttp import web

from tests.twins.images import MP3, PDF, PNG
from tests.unit.runtimes_http.service import Answering, service
from toolcrib.contracts import ErrorCode, Reason, Unavailable


def answering(body: bytes, **headers: str) -> Answering:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: web.Response(body=body, headers=sent)


@pytest.mark.requirement("runtime_http.answers")
@pytest.mark.parametrize(
    ("content_type", "body", "output"),
    [
        ("application/x-ndjson", b'{"a":1}\n\n{"a":2}\r\n', [{"a": 1}, {"a": 2}]),
        ("application/jsonl; charset=utf-8", b"1\n2", [1, 2]),
        ("application/json-seq", b'\x1e{"a":1}\n\x1e[2]\n', [{"a": 1}, [2]]),
        ("application/x-www-form-urlencoded", b"a=1&b=x%20y&a=2&a=3&c=", {"a": ["1", "2", "3"], "b": "x y", "c": ""}),
        ("application/json; charset=utf-16", '\ufeff{"ä": 1}'.encode("utf-16-le"), {"ä": 1}),
        ("application/json; charset=iso-8859-1", '"ä"'.encode("iso-8859-1"), "ä"),
        ("APPLICATION/VND.API+JSON;version=1", b"{}", {}),
        ("text/plain", b"\xef\xbb\xbfhello", "hello"),
        ("text/event-stream", b"data: 1\n\n", "data: 1\n\n"),
    ],
)
async def test_a_body_is_read_as_its_type_says(content_type: str, body: bytes, output: Any) -> None:
    async with service(answering(body, content_type=content_type)) as svc:
        assert (await svc.run(svc.tool())).output == output


@pytest.mark.requirement("runtime_http.bad_answers")
@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json-seq"])
async def test_a_broken_line_is_a_bad_response(content_type: str) -> None:
    separator = b"\x1e" if content_type.endswith("seq") else b"\n"
    async with service(answering(separator.join([b"1", b"{"]), content_type=content_type)) as svc:
        failed = await svc.failure(svc.tool())
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)


@pytest.mark.requirement("runtime_http.false_types")
@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=latin-1", "application/octet-stream", ""])
@pytest.mark.parametrize("body", [b'{"a": [1]}', b' \r\n{"a": [1]}'])
async def test_json_that_is_sent_as_something_else_is_json(content_type: str, body: bytes) -> None:
    async with service(answering(body, content_type=content_type)) as svc:
        assert (await svc.run(svc.tool())).output == {"a": [1]}


@pytest.mark.requirement("runtime_http.false_types")
@pytest.mark.parametrize("body", [b"{not json", b"[1] and more", b"<p>{}</p>", b'"x"', b"7"])
async def test_text_that_is_no_json_document_stays_text(body: bytes) -> None:
    async with service(answering(body, content_type="text/html")) as svc:
        assert (await svc.run(svc.tool())).output == body.decode()


@pytest.mark.requirement("runtime_http.false_types")
async def test_a_tool_that_promises_text_gets_text() -> None:
    async with service(answering(b'{"a": 1}', content_type="text/plain")) as svc:
        assert (await svc.run(svc.tool(output_schema={"type": "string"}))).output == '{"a": 1}'


@pytest.mark.requirement("runtime_http.answers")
@pytest.mark.parametrize(
    ("disposition", "filename"),
    [
        ('attachment; filename="report 1.pdf"', "report 1.pdf"),
        ("attachment; filename*=UTF-8''%C3%A4.pdf", "ä.pdf"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ('attachment; filename="C:\\\\x\\\\evil.exe"', "evil.exe"),
        ('attachment; filename=".."', None),
        ("inline", None),
    ],
)
async def test_a_file_has_the_name_that_it_is_given_without_a_path(disposition: str, filename: str | None) -> None:
    headers = {"content_type": "application/pdf", "content_disposition": disposition}
    async with service(answering(b"%PDF", **headers)) as svc:
        output = (await svc.run(svc.tool())).output
        assert output == {
            "media_type": "application/pdf",
            "filename": filename,
            "size": 4,
            "base64": "JVBERg==",
        }


@pytest.mark.requirement("runtime_http.large_files")
@pytest.mark.parametrize(("media_type", "kind"), [("application/pdf", "blob"), ("image/png", "image")])
async def test_a_file_that_is_too_large_for_the_output_is_kept_beside_it(media_type: str, kind: Any) -> None:
    data = bytes(range(256)) * 20
    async with service(answering(data, content_type=media_type)) as svc:
        outcome = await svc.run(svc.tool(max_output_bytes=4_000))
        assert outcome.output == {"media_type": media_type, "filename": None, "size": 5120, "base64": None}
        (kept,) = outcome.attachments
        assert (kept.kind, kept.content_type, kept.bytes) == (kind, media_type, 5120)
        digest = kept.url.removeprefix("blob:sha256:")
        assert await svc.store.blobs.get("default", digest) == data
        whole = await svc.run(svc.tool(max_output_bytes=9_000))
        assert base64.b64decode(whole.output["base64"]) == data
        assert whole.attachments == ()


@pytest.mark.requirement("files.results", "runtime_http.large_files")
@pytest.mark.parametrize(("data", "media_type"), [(PNG, "image/png"), (PDF, "application/pdf"), (MP3, "audio/mpeg")])
async def test_what_models_can_be_shown_is_an_attachment_and_fits_other_tools_as_base64(
    data: bytes, media_type: str
) -> None:
    headers = {"content_type": media_type, "content_disposition": 'attachment; filename="a.bin"'}
    async with service(answering(data, **headers)) as svc:
        outcome = await svc.run(svc.tool())
        text = base64.b64encode(data).decode()
        assert outcome.output == {"media_type": media_type, "filename": "a.bin", "size": len(data), "base64": text}
        (kept,) = outcome.attachments
        assert (kept.name, kept.content_type, kept.width) == ("a.bin", media_type, 8 if data == PNG else None)
        assert await svc.store.blobs.get("default", kept.digest or "") == data


class ClosedAttic:
    """An attic that takes nothing."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        raise Unavailable("the disk is full")


@pytest.mark.requirement("runtime_http.large_files")
async def test_a_file_that_cannot_be_kept_is_said_to_be_lost() -> None:
    async with service(answering(b"x" * 5_000, content_type="application/pdf"), attic=ClosedAttic()) as svc:
        outcome = await svc.run(svc.tool(max_output_bytes=4_000))
        assert outcome.output["size"] == 5_000
        assert outcome.attachments == ()
        assert outcome.metadata["warnings"] == ["the file (5000 bytes) could not be kept: the disk is full"]


@pytest.mark.requirement("runtime_http.answers")
async def test_a_compressed_answer_is_bounded_after_decompression() -> None:
    bomb = gzip.compress(b"[" + b" " * 5_000_000 + b"]")
    assert len(bomb) < 10_000
    packed = answering(bomb, content_encoding="gzip", content_type="application/json")
    async with service(packed, max_bytes=10**6) as svc:
        failed = await svc.failure(svc.tool())
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)

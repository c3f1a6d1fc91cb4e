"""What arrives at a service in a body that is not JSON, byte for byte and as others read it."""

import base64
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import pytest
from aiohttp import BodyPartReader, web
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.net.servers import serving
from tests.unit.runtimes_http.service import service
from toolcrib.contracts import ErrorCode, Reason
from toolcrib.kinds.http.runtime.bodies import UnsendableBody, write_body
from toolcrib.kinds.http.shape import FieldEncoding, HttpBody

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FILE = FieldEncoding(file=True)
BASE64 = base64.b64encode(b"\x00\xff PNG \r\n--").decode()
BYTES = b"\x00\xff PNG \r\n--"


def form(fields: Any, **encodings: FieldEncoding) -> HttpBody:
    return HttpBody(
        content_type=FORM, encoding="form", fields={name: name for name in fields}, encodings=encodings, required=True
    )


def multipart(fields: Any, **encodings: FieldEncoding) -> HttpBody:
    names = {name: name for name in fields}
    return HttpBody(content_type=MULTIPART, encoding="multipart", fields=names, encodings=encodings, required=True)


async def sent(body: HttpBody, arguments: Any) -> tuple[str | None, bytes]:
    """Content type and bytes as a server gets them."""
    async with service() as svc:
        seen = await svc.sent(svc.tool(method="POST", body=body), arguments)
        assert seen.headers.get("content-length", "0") == str(len(seen.body))
        return seen.headers.get("content-type"), seen.body


def parts_by_email(content_type: str, body: bytes) -> list[Message]:
    """The parts as the standard library's MIME parser reads them."""
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    assert not message.defects
    return list(message.get_payload())  # pyright: ignore[reportReturnType, reportArgumentType] - typed as anything


async def parts_by_aiohttp(content_type: str, body: bytes) -> list[tuple[str | None, str | None, str | None, bytes]]:
    """Name, file name, type and bytes of each part as a web server reads them."""
    found: list[tuple[str | None, str | None, str | None, bytes]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            data = bytes(await part.read(decode=False))
            found.append((part.name, part.filename, part.headers.get("content-type"), data))
        return web.Response()

    async with serving(handle) as port, aiohttp.ClientSession() as client:
        headers = {"content-type": content_type}
        async with client.post(f"http://127.0.0.1:{port}/", data=body, headers=headers) as answer:
            assert answer.status == 200
    return found


@pytest.mark.requirement("runtime_http.form_body")
@pytest.mark.parametrize(
    ("value", "encoding", "expected"),
    [
        ("a b&c=d+e", FieldEncoding(), b"x=a%20b%26c%3Dd%2Be"),
        ("", FieldEncoding(), b"x="),
        (7, FieldEncoding(), b"x=7"),
        (True, FieldEncoding(), b"x=true"),
        (None, FieldEncoding(), b""),
        ([1, 2], FieldEncoding(), b"x=1&x=2"),
        (["a,b", "c"], FieldEncoding(explode=False), b"x=a%2Cb,c"),
        (["a", "b"], FieldEncoding(style="spaceDelimited", explode=False), b"x=a%20b"),
        (["a", "b"], FieldEncoding(style="pipeDelimited", explode=False), b"x=a%7Cb"),
        (["a", "b"], FieldEncoding(style="tabDelimited", explode=False), b"x=a%09b"),
        ({"a": 1, "b": None}, FieldEncoding(), b"a=1"),
        ({"a": 1, "b": 2}, FieldEncoding(explode=False), b"x=a,1,b,2"),
        (
            {"a": {"b": [1, {"c": 2}]}},
            FieldEncoding(style="deepObject"),
            b"x%5Ba%5D%5Bb%5D%5B0%5D=1&x%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=2",
        ),
        ({"a": 1}, FieldEncoding(content_type="application/json"), b"x=%7B%22a%22%3A1%7D"),
        ("a", FieldEncoding(content_type="application/json"), b"x=%22a%22"),
        ("a/b?c", FieldEncoding(allow_reserved=True), b"x=a/b?c"),
    ],
)
async def test_a_form_field_is_written_in_its_style(value: Any, encoding: FieldEncoding, expected: bytes) -> None:
    kind, body = await sent(form(["x"], x=encoding), {"x": value})
    assert (kind, body) == (FORM, expected)


@pytest.mark.requirement("runtime_http.form_body")
async def test_a_form_may_be_one_argument() -> None:
    body = HttpBody(content_type=FORM, encoding="form", argument="body")
    assert await sent(body, {"body": {"a": 1, "b": ["x", "y"]}}) == (FORM, b"a=1&b=x&b=y")
    assert (await sent(body, {"body": None}))[1] == b""
    with pytest.raises(UnsendableBody, match="no object"):
        write_body(body, {"body": [1]})


@pytest.mark.requirement("runtime_http.form_body")
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")), max_size=5))
def test_whatever_is_in_a_form_can_be_read_back(fields: dict[str, str]) -> None:
    content = write_body(form(fields), fields)
    assert content is not None
    assert dict(parse_qsl(content.data.decode(), keep_blank_values=True)) == fields


@pytest.mark.requirement("runtime_http.multipart_body")
async def test_a_multipart_body_is_read_alike_by_a_web_server_and_by_a_mime_parser() -> None:
    encodings = {
        "file": FieldEncoding(file=True, filename="a.png", content_type="image/png"),
        "files": FILE,
        "meta": FieldEncoding(content_type="application/json"),
        "tags": FieldEncoding(explode=False),
    }
    arguments = {
        "title": "Grüße",
        "count": 3,
        "file": BASE64,
        "files": [{"base64": "YQ==", "filename": "ä.txt", "media_type": "text/plain"}, "Yg=="],
        "meta": {"a": [1]},
        "tags": ["x", "y"],
        "list": ["x", {"y": 1}],
        "nothing": None,
    }
    kind, body = await sent(multipart(arguments, **encodings), arguments)
    assert kind is not None
    expected = [
        ("title", None, None, "Grüße".encode()),
        ("count", None, None, b"3"),
        ("file", "a.png", "image/png", BYTES),
        ("files", "ä.txt", "text/plain", b"a"),
        ("files", "files", "application/octet-stream", b"b"),
        ("meta", None, "application/json", b'{"a":[1]}'),
        ("tags", None, "application/json", b'["x","y"]'),
        ("list", None, None, b"x"),
        ("list", None, "application/json", b'{"y":1}'),
    ]
    assert await parts_by_aiohttp(kind, body) == expected
    read = [part.get_payload(decode=True) for part in parts_by_email(kind, body)]
    assert read == [data for *_, data in expected]


@pytest.mark.requirement("runtime_http.multipart_body")
async def test_the_bytes_of_a_multipart_body_are_these_and_the_same_each_time() -> None:
    arguments = {"a": "1", "f": "aGk="}
    kind, body = await sent(multipart(arguments, f=FILE), arguments)
    boundary = str(kind).partition("boundary=")[2]
    assert kind == f"multipart/form-data; boundary={boundary}"
    assert (
        body
        == (
            f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n'
            "Content-Type: application/octet-stream\r\n\r\nhi\r\n"
            f"--{boundary}--\r\n"
        ).encode()
    )
    assert await sent(multipart(arguments, f=FILE), arguments) == (kind, body)


@pytest.mark.requirement("runtime_http.multipart_body")
async def test_a_part_has_the_headers_that_arguments_give_it() -> None:
    encoding = FieldEncoding(file=True, headers={"X-Checksum": "sum", "X-Other": "other"})
    kind, body = await sent(multipart(["f"], f=encoding), {"f": "aGk=", "sum": 7, "other": None})
    (part,) = parts_by_email(str(kind), body)
    assert (part["X-Checksum"], part["X-Other"]) == ("7", None)


@pytest.mark.requirement("runtime_http.multipart_body", "runtime_http.header_safety")
async def test_no_name_and_no_value_ends_a_part_or_a_header() -> None:
    evil = 'a"\r\nX-Evil: 1\r\n\r\n--x--'
    encoding = FieldEncoding(file=True, headers={"X-Note": "note"})
    arguments = {evil: "t", "f": {"base64": "aGk=", "filename": evil, "media_type": f"text/plain{evil}"}, "note": evil}
    kind, body = await sent(multipart([evil, "f"], f=encoding), arguments)
    first, second = parts_by_email(str(kind), body)
    assert [name.lower() for name in first] == ["content-disposition"]
    assert [name.lower() for name in second] == ["content-disposition", "content-type", "x-note"]
    assert [part.get_payload(decode=True) for part in (first, second)] == [b"t", b"hi"]


@pytest.mark.requirement("runtime_http.multipart_body")
async def test_a_multipart_body_of_another_kind_keeps_its_parameters_and_names_no_parts() -> None:
    body = HttpBody(
        content_type='multipart/related; type="application/json"; boundary=old',
        encoding="multipart",
        argument="body",
        encodings={"xml": FieldEncoding(content_type="text/xml; charset=iso-8859-1")},
    )
    kind, data = await sent(body, {"body": {"xml": "<ä/>", "meta": {"a": 1}}})
    assert str(kind).startswith('multipart/related; type="application/json"; boundary=toolcrib-')
    assert b"Content-Disposition" not in data
    first, second = parts_by_email(str(kind), data)
    assert first.get_payload(decode=True) == "<ä/>".encode("iso-8859-1")
    assert second.get_content_type() == "application/json"


@pytest.mark.requirement("runtime_http.multipart_body")
async def test_an_empty_multipart_body_is_one_all_the_same() -> None:
    kind, body = await sent(multipart([]), {})
    assert body == f"--{str(kind).partition('boundary=')[2]}--\r\n".encode()


@pytest.mark.requirement("runtime_http.plain_body")
@pytest.mark.parametrize(
    ("content_type", "value", "expected"),
    [
        ("text/plain", "Grüße", "Grüße".encode()),
        ("application/xml; charset=iso-8859-1", "<ä/>", b"<\xe4/>"),
        ("text/csv", "a,b\r\n1,2", b"a,b\r\n1,2"),
        ("text/plain", 7, b"7"),
        ("text/plain", "", b""),
    ],
)
async def test_text_is_sent_in_the_charset_of_its_type(content_type: str, value: Any, expected: bytes) -> None:
    body = HttpBody(content_type=content_type, encoding="text", argument="body")
    assert await sent(body, {"body": value}) == (content_type, expected)


@pytest.mark.requirement("runtime_http.plain_body")
@pytest.mark.parametrize("value", [BASE64, f"{BASE64[:4]}\n {BASE64[4:]}\n", {"base64": BASE64, "filename": "x"}])
async def test_bytes_are_sent_as_they_are(value: Any) -> None:
    body = HttpBody(content_type="application/pdf", encoding="binary", argument="body")
    assert await sent(body, {"body": value}) == ("application/pdf", BYTES)


@pytest.mark.requirement("runtime_http.plain_body")
@given(st.binary(max_size=200))
def test_whatever_the_bytes_they_are_sent(data: bytes) -> None:
    body = HttpBody(content_type="application/pdf", encoding="binary", argument="body")
    content = write_body(body, {"body": base64.b64encode(data).decode()})
    assert content is not None
    assert content.data == data


@pytest.mark.requirement("runtime_http.unsendable_body")
@pytest.mark.parametrize(
    ("body", "value", "message"),
    [
        (HttpBody(content_type="a/b", encoding="binary", argument="x"), "§", "'x' is not base64"),
        (HttpBody(content_type="a/b", encoding="binary", argument="x"), "YQ", "'x' is not base64"),
        (HttpBody(content_type="a/b", encoding="binary", argument="x"), 7, "neither base64 text nor a file"),
        (HttpBody(content_type="a/b", encoding="binary", argument="x"), {"path": "/etc"}, "neither base64 text nor"),
        (multipart(["x"], x=FILE), [{"base64": 1}], "'x' is neither base64 text nor a file with base64 (base64)"),
        (HttpBody(content_type="text/plain; charset=ascii", encoding="text", argument="x"), "ä", "ascii has no"),
        (HttpBody(content_type="text/plain; charset=no-such", encoding="text", argument="x"), "a", "is unknown"),
        (form(["x"]), "\ud83d", "lone surrogate"),
        (multipart(["x"]), "\ud83d", "lone surrogate"),
    ],
)
async def test_what_cannot_become_a_body_is_refused_before_anything_is_sent(
    body: HttpBody, value: Any, message: str
) -> None:
    async with service() as svc:
        failed = await svc.failure(svc.tool(method="POST", body=body), {"x": value})
        assert (failed.error.code, failed.error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH)
        assert message in failed.error.message
        assert svc.seen == []

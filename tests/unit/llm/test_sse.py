"""The parser of server-sent events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.transport import SseParser

pytestmark = pytest.mark.requirement("llm.sse_any_cut")

PAYLOADS = st.lists(st.text(alphabet='aäß🌧 :"{}', min_size=1, max_size=8), min_size=1, max_size=4)


def parse(*chunks: bytes, cap: int = 1000) -> list[bytes]:
    parser = SseParser(cap)
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b": comment\n\nevent: x\nid: 7\nretry: 3\ndata: a\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\n", [b"a"]),
        (b"data: a\n\ndata: half", [b"a"]),
        (b"event: x\n\n\n\n", []),
        (b"\xef\xbb", []),
        (b"", []),
    ],
)
def test_a_stream_is_its_payloads(stream: bytes, events: list[bytes]):
    assert parse(stream) == events
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == events


@given(payloads=PAYLOADS, end=st.sampled_from(["\n", "\r\n", "\r"]), data=st.data())
def test_no_cut_changes_what_is_read(payloads: list[str], end: str, data: st.DataObject):
    stream = "".join(f"data: {payload}{end}{end}" for payload in payloads).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=5)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert parse(*chunks) == [payload.encode() for payload in payloads]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 60, b"data: xxxxxxxxxxxx\n" * 6, b": " + b"x" * 60])
def test_an_event_beyond_the_cap_is_refused(stream: bytes):
    with pytest.raises(ModelError, match="more than 50 bytes") as caught:
        parse(stream, cap=50)
    assert caught.value.kind == "bad_response"


def test_the_cap_holds_for_each_event_and_not_for_the_stream():
    assert len(parse(b"data: xxxxxxxxxxxxxxxxxxxx\n\n" * 10, cap=50)) == 10

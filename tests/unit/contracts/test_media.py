"""What bytes are, by their beginning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins.images import MP3, PDF, PNG, WAV, gif, jpeg, png, webp
from toolcrib.contracts.base.media import attachment_of, image_size, input_of, is_true, plain_type, sniff, text_of

pytestmark = pytest.mark.requirement("files.true_types")

IMAGES = {
    "image/png": [png(30, 20)],
    "image/jpeg": [jpeg(30, 20)],
    "image/gif": [gif(30, 20)],
    "image/webp": [webp(kind, 30, 20) for kind in (b"VP8 ", b"VP8L", b"VP8X")],
}
OTHERS = {"application/pdf": [PDF], "audio/wav": [WAV], "audio/mpeg": [MP3, b"\xff\xfb\x90\x00", b"\xff\xf3\x90\x00"]}
KNOWN = [(kind, data) for kinds in (IMAGES, OTHERS) for kind, files in kinds.items() for data in files]


@pytest.mark.parametrize(("media_type", "data"), KNOWN)
def test_a_file_is_of_one_type_and_of_no_other(media_type: str, data: bytes):
    assert sniff(data) == media_type
    assert is_true(data, media_type)
    assert [kind for kind in (*IMAGES, *OTHERS) if is_true(data, kind)] == [media_type]


@pytest.mark.parametrize("data", [data for files in IMAGES.values() for data in files])
def test_the_size_of_an_image_stands_in_its_header(data: bytes):
    assert image_size(data) == (30, 20)


@pytest.mark.parametrize("data", [data for files in IMAGES.values() for data in files])
def test_an_image_whose_header_is_cut_off_is_none(data: bytes):
    cut = [data[:length] for length in range(len(data)) if image_size(data[:length]) is None]

    assert len(cut) >= 10
    assert not any(is_true(piece, kind) for piece in cut for kind in IMAGES)


@pytest.mark.parametrize(
    "data",
    [
        png(0, 5),
        gif(5, 0),
        webp(b"VP8 ", 0, 5),
        webp(b"XXXX"),
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8\xff\xe0\x00\x00\xff\xe1\x00",
    ],
)
def test_an_image_without_a_size_is_none(data: bytes):
    assert image_size(data) is None
    assert not is_true(data, sniff(data) or "image/png")


@given(st.binary(max_size=64), st.sampled_from([data for _, data in KNOWN]), st.integers(0, 64))
def test_no_bytes_break_the_reading_of_headers(noise: bytes, data: bytes, place: int):
    for mixed in (noise, data[:place] + noise, data[:place] + noise + data[place:]):
        size = image_size(mixed)
        assert size is None or min(size) > 0
        assert sniff(mixed) in {None, *IMAGES, *OTHERS}


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/PNG; q=1", "image"),
        ("image/jpg", "image"),
        ("image/svg+xml", None),
        ("image/tiff", None),
        ("application/x-pdf", "pdf"),
        ("audio/mp3", "audio"),
        ("audio/x-wav", "audio"),
        ("text/csv; charset=utf-8", "text"),
        ("application/json", "text"),
        ("application/problem+json", "text"),
        ("application/zip", None),
        ("", None),
    ],
)
def test_a_media_type_says_what_a_model_must_be_able_to_read(media_type: str, kind: str | None):
    assert input_of(media_type) == kind


def test_a_text_is_utf_8_without_zero_bytes():
    assert text_of("\ufeffGrüße".encode()) == "Grüße"
    assert is_true(b"a,b", "text/csv")
    assert not is_true(b"a\0b", "text/csv")
    assert not is_true(b"\xff\xfe", "text/csv")
    assert not is_true(b"PK", "application/zip")
    assert plain_type("text/csv; charset=x") == "text/csv"


def test_bytes_become_an_attachment_with_the_size_of_an_image():
    image = attachment_of(PNG, "image/png", name="a.png")
    other = attachment_of(b"%PDF", "image/png", kind="blob")
    pdf = attachment_of(PDF, "application/pdf", kind="blob")

    assert (image.kind, image.width, image.height, image.bytes, image.name) == ("image", 8, 6, len(PNG), "a.png")
    assert (other.kind, other.width, other.height) == ("image", None, None)
    assert (pdf.kind, pdf.width) == ("blob", None)
    assert image.digest is not None

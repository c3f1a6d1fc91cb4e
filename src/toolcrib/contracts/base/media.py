"""What the bytes of a file are: their media type by their first bytes, the size of an image, and what can read them.

Only the headers are read, and nothing is decoded.

Formats: PNG 1.2, section 11.2.2; GIF89a, section 18; ITU-T T.81 (JPEG), annex B; the WebP container and VP8 frames (RFC
9649, RFC 6386); RIFF WAVE; MPEG audio frames with or without an ID3v2 tag; ISO 32000 (PDF), section 7.5.2.
"""

from typing import Final, Literal, TypeAlias

from toolcrib.contracts.base.envelope import Attachment, AttachmentKind
from toolcrib.contracts.base.identity import digest

ModelInput: TypeAlias = Literal["image", "pdf", "audio"]
"""What some models can read besides text. A text file is text, which all of them can."""

IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF: Final = "application/pdf"
AUDIO: Final = ("audio/wav", "audio/mpeg")
_ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "application/x-pdf": PDF,
}
_TEXTS: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
)
UNKNOWN: Final = "application/octet-stream"


def plain_type(media_type: str) -> str:
    """A media type without parameters, by its usual name."""
    bare = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(bare, bare)


def input_of(media_type: str) -> ModelInput | Literal["text"] | None:
    """What a model must be able to read to be shown a file of this type; null for a type that no model is shown."""
    plain = plain_type(media_type)
    if plain in IMAGES:
        return "image"
    if plain == PDF:
        return "pdf"
    if plain in AUDIO:
        return "audio"
    is_text = plain.startswith("text/") or plain in _TEXTS or plain.endswith(("+json", "+xml"))
    return "text" if is_text and plain != "image/svg+xml" else None


def sniff(data: bytes) -> str | None:
    """The media type that bytes have by their beginning; null if it is none that a model is shown as bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    if data.startswith(b"%PDF-"):
        return PDF
    is_frame = len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2  # 11 bits of sync, and layer III
    return "audio/mpeg" if is_frame or data.startswith(b"ID3") else None


def is_true(data: bytes, media_type: str) -> bool:
    """Whether bytes are what a media type says. An image must have a size, a text must be UTF-8 without zero bytes."""
    plain = plain_type(media_type)
    match input_of(plain):
        case "image":
            return sniff(data) == plain and image_size(data) is not None
        case "text":
            return text_of(data) is not None
        case None:
            return False
        case _:
            return sniff(data) == plain


def text_of(data: bytes) -> str | None:
    """The text that bytes are; null if they are none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of an image in pixels; null if the header is not whole, or says 0."""
    match sniff(data):
        case "image/png":
            size = _big(data, 16, 4), _big(data, 20, 4)
        case "image/gif":
            size = _little(data, 6, 2), _little(data, 8, 2)
        case "image/jpeg":
            size = _jpeg_size(data)
        case "image/webp":
            size = _webp_size(data)
        case _:
            return None
    return size if all(size) else None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Of the first frame header (SOF0 to SOF15, without DHT, JPG and DAC); the segments before it are skipped."""
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # a fill byte
            place += 1
        elif 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _big(data, place + 7, 2), _big(data, place + 5, 2)
        else:
            place += 2 + max(_big(data, place + 2, 2), 2)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return (_little(data, 24, 3) + 1, _little(data, 27, 3) + 1) if len(data) >= 30 else (0, 0)
        case b"VP8L":
            bits = _little(data, 21, 4)
            return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if bits else (0, 0)
        case b"VP8 ":
            return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
        case _:
            return 0, 0


def _big(data: bytes, place: int, length: int) -> int:
    """An unsigned number, the most significant byte first; 0 if the bytes are not there."""
    piece = data[place : place + length]
    return int.from_bytes(piece, "big") if len(piece) == length else 0


def _little(data: bytes, place: int, length: int) -> int:
    piece = data[place : place + length]
    return int.from_bytes(piece, "little") if len(piece) == length else 0


def attachment_of(
    data: bytes, content_type: str, *, kind: AttachmentKind = "file", name: str | None = None
) -> Attachment:
    """The attachment of bytes that are kept as a blob.

    Args:
        data: The bytes.
        content_type: Their media type.
        kind: Of an attachment that is no image.
        name: A file name, or the address that the file has elsewhere.
    """
    size = image_size(data) if content_type.startswith("image/") else None
    return Attachment(
        kind="image" if content_type.startswith("image/") else kind,
        url=f"blob:sha256:{digest(data)}",
        content_type=content_type,
        bytes=len(data),
        name=name,
        width=size[0] if size else None,
        height=size[1] if size else None,
    )

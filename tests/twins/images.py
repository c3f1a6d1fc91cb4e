"""Small files of the types that models can read; a viewer would show most of them."""

import struct
import zlib
from typing import Final


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int = 8, height: int = 6) -> bytes:
    """A grey image."""
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def jpeg(width: int = 8, height: int = 6) -> bytes:
    """The headers of an image: JFIF, a fill byte, a table, and a frame."""
    app = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    table = b"\xff\xff\xc4\x00\x05\x00\x00\x00"
    frame = b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\x00"
    return b"\xff\xd8" + app + table + frame + b"\xff\xd9"


def gif(width: int = 8, height: int = 6) -> bytes:
    """The header of an image."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00;"


def webp(kind: bytes = b"VP8 ", width: int = 8, height: int = 6) -> bytes:
    """The header of an image: lossy, lossless or extended."""
    match kind:
        case b"VP8X":
            data = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        case b"VP8L":
            data = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
        case _:
            data = b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    body = b"WEBP" + kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


PNG: Final = png()
PDF: Final = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF\n"
WAV: Final = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" + bytes(16)
MP3: Final = b"ID3\x04\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x00"

"""Files in requests: which a model is shown, how the others are described to it, and the tokens that they may come to.

A wire gets only files that its model can read, with their bytes as base64. A text file is shown as text to every model.
What a model cannot read, what is gone, what is not what its type says, and what exceeds the limits of one request is
described in words.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil
from typing import Final

import msgspec

from toolcrib.contracts import Attachment
from toolcrib.contracts.base.media import UNKNOWN, input_of, is_true, plain_type, text_of
from toolcrib.llm.base.messages import FilePart, Message, Part, Request, Text, ToolResult
from toolcrib.llm.base.quirks import Quirks

MOST_SHOWN: Final = 20
"""Files that one request shows at most, the newest of a conversation: what all providers take at their full size."""
MOST_SHOWN_BYTES: Final = 20 * 1024 * 1024
"""Bytes of them at most: as base64 they are 28 MB, and requests to Anthropic have 32 MB at most."""
_NAMES: Final = {"image": "images", "pdf": "PDF files", "audio": "audio"}


def file_of(attachment: Attachment) -> FilePart | None:
    """The part of a message that shows an attachment; null if its bytes are not kept in the crib."""
    digest = attachment.digest
    if digest is None:
        return None
    return FilePart(
        digest,
        plain_type(attachment.content_type or UNKNOWN),
        attachment.bytes or 0,
        attachment.name or "",
        attachment.width or 0,
        attachment.height or 0,
    )


def with_files(message: Message, attachments: Iterable[Attachment]) -> Message:
    """A message with files after its words."""
    files = [file for attachment in attachments if (file := file_of(attachment)) is not None]
    return Message(message.role, (*message.parts, *files))


def has_files(messages: Iterable[Message]) -> bool:
    """Whether a conversation has files; it is asked of every request."""
    for message in messages:
        for part in message.parts:
            if type(part) is FilePart or (type(part) is ToolResult and part.files):
                return True
    return False


def files_in(messages: Iterable[Message]) -> list[FilePart]:
    """The files of a conversation, in order."""
    found: list[FilePart] = []
    for message in messages:
        for part in message.parts:
            if type(part) is FilePart:
                found.append(part)
            elif type(part) is ToolResult and part.files:
                found += part.files
    return found


def places_shown(files: Sequence[FilePart]) -> frozenset[int]:
    """The places of the files that one request takes: the last ones within its limits."""
    sizes = accumulate(file.size for file in files[: -MOST_SHOWN - 1 : -1])
    return frozenset(len(files) - 1 - back for back, size in enumerate(sizes) if size <= MOST_SHOWN_BYTES)


def describe(file: FilePart, why: str) -> str:
    """What a model is told in place of a file that it is not shown.

    Args:
        file: The file.
        why: Why it is not shown.
    """
    kind = input_of(file.media_type)
    size = f"{file.width}x{file.height}" if file.width and file.height else ""
    facts = (f"{kind if kind in {'image', 'audio'} else 'file'} {file.name}".rstrip(), file.media_type, size)
    return f"[{', '.join(fact for fact in (*facts, _in_bytes(file.size)) if fact)}; {why}]"


def _in_bytes(size: int) -> str:
    for unit, least in (("MB", 1_000_000), ("kB", 1000)):
        if size >= least:
            return f"{size / least:.3g} {unit}"
    return f"{size} bytes"


# What is shown --------------------------------------------------------------------------------------------------------


def with_files_shown(request: Request, quirks: Quirks) -> Request:
    """The request as its wire takes it: with the bytes of what the model can read, and words for all else.

    Args:
        request: The request, with the bytes of its files.
        quirks: Say what the model can read.
    """
    viewer = _Viewer(request.files or {}, quirks, files_in(request.messages))
    messages = tuple(viewer.message(message) for message in request.messages)
    return msgspec.structs.replace(request, messages=messages, files=None)


class _Viewer:
    """Shows the files of one request, from the first message to the last."""

    def __init__(self, data: Mapping[str, bytes], quirks: Quirks, files: list[FilePart]) -> None:
        self._data = data
        self._inputs = quirks.inputs
        self._shown = places_shown(files)
        self._place = 0
        """Of the next file, in the order of `files`."""

    def message(self, message: Message) -> Message:
        """The message with its files as they are shown; itself if it has none."""
        parts: list[Part] = []
        for part in message.parts:
            if type(part) is FilePart:
                parts.append(self._file(part))
            elif type(part) is ToolResult and part.files:
                parts.append(self._result(part))
            else:
                parts.append(part)
        return message if all(map(_is, parts, message.parts)) else Message(message.role, tuple(parts))

    def _result(self, result: ToolResult) -> ToolResult:
        shown = [self._file(file) for file in result.files]
        words = (result.text, *(part.text for part in shown if type(part) is Text))
        files = tuple(part for part in shown if type(part) is FilePart)
        return msgspec.structs.replace(result, text="\n".join(filter(None, words)), files=files)

    def _file(self, file: FilePart) -> Part:
        place, self._place = self._place, self._place + 1
        if place not in self._shown:
            return Text(describe(file, "it is not shown again, because later files fill the request"))
        data = self._data.get(file.digest)
        if data is None:
            return Text(describe(file, "its bytes are not kept any more"))
        if not is_true(data, file.media_type):
            return Text(describe(file, "its bytes are not of that type, or it is of a type that models cannot read"))
        kind = input_of(file.media_type)
        if kind == "text":
            return Text(f"[file {file.name or 'without a name'}, {file.media_type}]\n{text_of(data)}")
        if kind not in self._inputs:
            return Text(describe(file, f"this model cannot read {_NAMES[kind or 'image']}"))
        return msgspec.structs.replace(file, data=b64encode(data).decode())


def _is(one: Part, other: Part) -> bool:
    return one is other


# What it costs --------------------------------------------------------------------------------------------------------

_UNKNOWN_IMAGE_TOKENS: Final = 1600
_PAGE_BYTES: Final = 50_000
_PAGE_TOKENS: Final = 3000
_AUDIO_BYTES_PER_TOKEN: Final = 500
_TEXT_BYTES_PER_TOKEN: Final = 4


def tokens_of_file(file: FilePart) -> int:
    """The tokens that a file comes to at most, whichever provider reads it; an estimate.

    A page of a PDF file counts 3,000 tokens and as 50,000 bytes; a second of audio 32 tokens and as 16,000 bytes.
    """
    match input_of(file.media_type):
        case "image":
            return image_tokens(file.width, file.height)
        case "pdf":
            return _PAGE_TOKENS * max(1, ceil(file.size / _PAGE_BYTES))
        case "audio":
            return ceil(file.size / _AUDIO_BYTES_PER_TOKEN)
        case "text":
            return ceil(file.size / _TEXT_BYTES_PER_TOKEN)
        case None:
            return 0  # which is described in a few words


def image_tokens(width: int, height: int) -> int:
    """The tokens of an image at most, by the formulas of the providers.

    Args:
        width: In pixels; 0 if it is not known.
        height: Likewise.
    """
    if not (width and height):
        return _UNKNOWN_IMAGE_TOKENS
    return max(_anthropic_tokens(width, height), _openai_tokens(width, height), _gemini_tokens(width, height))


def _anthropic_tokens(width: int, height: int) -> int:
    """A token for each 750 pixels of an image of at most 1,568 a side, 1,600 in all.

    https://platform.claude.com/docs/en/build-with-claude/vision
    """
    scale = min(1.0, 1568 / max(width, height))
    return min(1600, ceil(width * scale * height * scale / 750))


def _openai_tokens(width: int, height: int) -> int:
    """85, and 170 for each 512-pixel tile of an image within 2,048 pixels a side whose shorter one has at most 768.

    https://developers.openai.com/api/docs/guides/images
    """
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return 85 + 170 * ceil(width * scale / 512) * ceil(height * scale / 512)


def _gemini_tokens(width: int, height: int) -> int:
    """258 for a small image; else for each tile, whose side is two thirds of the shorter one.

    https://ai.google.dev/gemini-api/docs/image-understanding
    """
    if max(width, height) <= 384:
        return 258
    side = max(1.0, min(width, height) / 1.5)
    return min(258 * ceil(width / side) * ceil(height / side), 8 * 258)

"""Files that come with a message: checked by their bytes, limited, and kept as blobs of the realm.

A journal has what describes them. An address in place of bytes is refused: a model is shown only what was checked here.
"""

import binascii
import mimetypes
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, NoReturn

from toolcrib.contracts import Attachment, FileInput, InvalidInput, Principal
from toolcrib.contracts.base.media import (
    AUDIO,
    IMAGES,
    PDF,
    UNKNOWN,
    attachment_of,
    input_of,
    is_true,
    plain_type,
    sniff,
    text_of,
)
from toolcrib.infrastructure.store import Blobs

MOST_FILES: Final = 20
"""With one message."""
MOST_FILE_BYTES: Final = 10 * 1024 * 1024
"""Of one file."""
MOST_FILES_BYTES: Final = 20 * 1024 * 1024
"""Of all files of one message."""

ReadAttachment = Callable[[str, str], Awaitable[tuple[Attachment, bytes]]]
"""Reads an attachment by the id of a run and a digest, for a principal who may."""


class _File(NamedTuple):
    data: bytes
    media_type: str
    name: str | None


class MessageFiles:
    """Takes the files of messages.

    Args:
        blobs: Keeps the bytes.
        read_attachment: Reads what a message names in place of bytes.
    """

    def __init__(self, blobs: Blobs, read_attachment: ReadAttachment) -> None:
        self._blobs = blobs
        self._read_attachment = read_attachment

    async def keep(self, files: Sequence[FileInput], who: Principal) -> tuple[Attachment, ...]:
        """Keep the files of a message; nothing is kept if one of them is refused.

        Args:
            files: As they came.
            who: The principal whose message it is.

        Raises:
            InvalidInput: One is too large, is not what its type says, or is of a type that no model reads, or there are
                too many. Names the file, its size or type, the limit, and what to send.
            NotFound: There is no such run or attachment.
            PermissionDenied: The run is another principal's.
        """
        if len(files) > MOST_FILES:
            msg = (
                f"a message has {len(files)} files, and {MOST_FILES} is the most; send the others with another message"
            )
            raise InvalidInput(msg)
        read = [await self._read(file, place) for place, file in enumerate(files)]
        size = sum(len(file.data) for file in read)
        if size > MOST_FILES_BYTES:
            msg = f"the files of a message have {size} bytes, and {MOST_FILES_BYTES} is the most; send fewer at once"
            raise InvalidInput(msg)
        for data, media_type, _ in read:
            await self._blobs.put(data, realm=who.realm, made_by=who.id, content_type=media_type)
        return tuple(attachment_of(data, media_type, name=name) for data, media_type, name in read)

    async def _read(self, file: FileInput, place: int) -> _File:
        if file.run_id is not None and file.digest is not None and file.base64 is None:
            kept, data = await self._read_attachment(file.run_id, file.digest)
            found = _File(data, file.media_type or kept.content_type or "", file.name or kept.name)
        elif file.base64 is not None and file.run_id is None and file.digest is None:
            found = _File(_decode(file, place), file.media_type or "", file.name)
        else:
            _refuse(file, place, "has neither bytes nor an attachment, or both; send base64, or run_id and digest")
        if len(found.data) > MOST_FILE_BYTES:
            _refuse(file, place, f"has {len(found.data)} bytes, and {MOST_FILE_BYTES} is the most; send a smaller one")
        return found._replace(media_type=_checked_type(found, file, place))


def _decode(file: FileInput, place: int) -> bytes:
    try:
        return b64decode(file.base64 or "", validate=True)
    except binascii.Error as problem:
        _refuse(file, place, f"is not base64 (RFC 4648): {problem}; encode its bytes, without a data: prefix")


def _checked_type(found: _File, file: FileInput, place: int) -> str:
    """The media type of a file, which its bytes have."""
    data, said, name = found
    plain, real = plain_type(said), sniff(data)
    if plain in {"", UNKNOWN}:
        guess = plain_type(mimetypes.guess_type(name or "")[0] or "")
        plain = real or guess or ("text/plain" if text_of(data) is not None else UNKNOWN)
    if input_of(plain) is None:
        known = ", ".join((*IMAGES, PDF, *AUDIO))
        _refuse(file, place, f"is of type {plain[:100]!r}, which models do not read; send {known}, or text")
    if not is_true(data, plain):
        what = f"are of type {real!r}" if real is not None else "are not"
        _refuse(file, place, f"is said to be {plain!r}, and its bytes {what}; send the whole file with its own type")
    return plain


def _refuse(file: FileInput, place: int, why: str) -> NoReturn:
    name = f" ({file.name[:100]})" if file.name else ""
    msg = f"files/{place}{name} {why}"
    raise InvalidInput(msg, [{"path": f"/files/{place}", "problem": why}])

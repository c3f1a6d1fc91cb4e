"""Files in the content of messages: images, sounds and documents that a client sends as bytes.

An address is refused, because what a model is shown is checked here first. So are ids of files at a provider.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, cast

from toolcrib.contracts import FileInput, InvalidInput
from toolcrib.crib.agents.message_files import MOST_FILES, MOST_FILES_BYTES

_BASE64: Final = ";base64,"
KINDS: Final = frozenset({"image_url", "input_audio", "file", "input_image", "input_file"})
"""Types of the parts of content that are files, of both APIs."""


def file_of_part(part: Mapping[str, Any], path: str) -> FileInput:
    """The file that a part of the content is.

    Args:
        part: Its `type` is one of `KINDS`.
        path: Where it stands.

    Raises:
        InvalidInput: It names a file in place of its bytes, or has none.
    """
    kind = str(part["type"])
    found: Any = part.get(kind) if kind in {"image_url", "input_audio", "file"} else part
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, dict) else {"url": found}
    for elsewhere in ("file_id", "file_url"):
        if fields.get(elsewhere):
            _refuse(f"has a {elsewhere}; send the bytes of the file, as a data: URL", path)
    data = next((fields[name] for name in ("url", "image_url", "file_data", "data") if fields.get(name)), None)
    if not isinstance(data, str):
        _refuse(f"of type {kind!r} has no bytes; send a data: URL", path)
    name = str(fields.get("filename") or "")
    media_type = f"audio/{fields.get('format')}" if kind == "input_audio" else None
    return file_from(data, path, name=name, media_type=media_type)


def file_from(data: str, path: str, *, name: str | None, media_type: str | None) -> FileInput:
    """The file of a data: URL (RFC 2397), or of bare base64.

    Raises:
        InvalidInput: It is another address.
    """
    if data.startswith("data:"):
        head, mark, body = data.partition(_BASE64)
        if not mark:
            _refuse("has a data: URL that is not base64; write it as data:image/png;base64,…", path)
        data, media_type = body, head.removeprefix("data:") or media_type
    elif "://" in data[:20]:
        _refuse("has an address, and agents fetch none; send the bytes, as a data: URL", path)
    return FileInput(base64=data, media_type=(media_type or "")[:200] or None, name=(name or "")[:500] or None)


def _refuse(why: str, path: str) -> NoReturn:
    raise InvalidInput(f"the part of the content {why}", [{"path": path, "problem": why}])


def newest_files(messages: Sequence[Sequence[FileInput]]) -> list[FileInput]:
    """The files of a conversation that one message takes: those of its last message, and before them the newest others.

    Args:
        messages: The files of each message.
    """
    *earlier, last = messages
    chosen, size = list(last), sum(map(_size, last))
    for file in reversed([file for files in earlier for file in files]):
        size += _size(file)
        if len(chosen) >= MOST_FILES or size > MOST_FILES_BYTES:
            break
        chosen.insert(0, file)
    return chosen


def _size(file: FileInput) -> int:
    return len(file.base64 or "") * 3 // 4

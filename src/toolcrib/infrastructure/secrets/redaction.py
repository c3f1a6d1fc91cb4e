"""Takes known secret values out of JSON before it is stored, shown or sent to a model.

Works on values, not on names: whatever a tool echoes, in whatever common encoding, is replaced by `[secret]`. Values
shorter than eight characters are left alone, because replacing them would destroy ordinary text.
"""

import base64
import json
from collections.abc import Iterable
from typing import cast
from urllib.parse import quote, quote_plus

from toolcrib.contracts import Json

PLACEHOLDER = "[secret]"
_SHORTEST = 8
_URL_SAFE = str.maketrans("+/", "-_")
"""RFC 4648, section 5."""


class Redactor:
    """Replaces the given values and their usual encodings: base64 (also inside a longer text), URL, JSON and hex."""

    def __init__(self, values: Iterable[str]) -> None:
        spellings = {spelling for value in values if len(value) >= _SHORTEST for spelling in _spellings(value)}
        self._spellings = sorted(spellings, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def text(self, text: str) -> str:
        """The text without the values."""
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, PLACEHOLDER)
        return text

    def json(self, value: Json) -> Json:
        """The same JSON without the values, in keys too; a value that holds none is returned as it is."""
        if not self._spellings:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.json(item) for key, item in cast("dict[str, Json]", value).items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in cast("list[Json]", value)]
        return value


def _spellings(value: str) -> set[str]:
    data = value.encode()
    found = {value, quote(value, safe=""), quote(value), quote_plus(value), data.hex(), data.hex().upper()}
    found |= {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    for offset in range(3):
        # Base64 of a longer text that contains the value: keep only the characters that depend on the value alone.
        encoded = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
        head, tail = (0, 2, 3)[offset], 1 if (offset + len(data)) % 3 else 0
        piece = encoded[head : len(encoded) - tail]
        found |= {piece, piece.translate(_URL_SAFE)}
    return {spelling for spelling in found if len(spelling) >= _SHORTEST}

"""The text in `{"answer": "…"}` while it is still being written. It reads this one form and nothing else."""

import json
import re

_HEAD = re.compile(r'\s*(?:```\w*\s*)?\{\s*"answer"\s*:\s*"')
_PIECE = re.compile(
    r'(?:[^"\\]'
    r'|\\["\\/bfnrt]'
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})+"
)
"""Complete characters of a JSON string; an escape that is cut off, and half a surrogate pair, wait for the rest."""


class AnswerText:
    """The text of one answer as it grows."""

    def __init__(self) -> None:
        self._rest = ""
        self.found = False
        """Whether the answer has this form."""
        self.said = ""
        """The text so far."""

    def feed(self, written: str) -> str:
        """More of the answer's JSON; what it adds to the text."""
        self._rest += written
        if not self.found:
            head = _HEAD.match(self._rest)
            if head is None:
                return ""
            self.found = True
            self._rest = self._rest[head.end() :]
        piece = _PIECE.match(self._rest)
        if piece is None:
            return ""
        self._rest = self._rest[piece.end() :]
        added = str(json.loads(f'"{piece[0]}"', strict=False))
        self.said += added
        return added

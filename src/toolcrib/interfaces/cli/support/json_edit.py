"""Changes single members of a JSON file of another program, and leaves the rest of its text as it is.

Comments and trailing commas are kept where the program allows them, as editors do in their settings.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR: Final = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_COMMENT: Final = re.compile(r"//|/\*")
_DEEPEST: Final = 100


class NotJsonError(ValueError):
    """The text is not JSON; the message says where."""


@dataclass(slots=True)
class _Node:
    """A value and where it stands in the text."""

    value: Any
    start: int
    end: int = 0
    members: list[tuple[str, int, "_Node"]] = field(default_factory=list[tuple[str, int, "_Node"]])
    """Of an object: key, where the member begins, and value; of an array the keys are empty."""
    trailing: int | None = None
    """Where a comma after the last member ends."""


def read_json(text: str, *, comments: bool = False) -> Any:
    """The value of a text.

    Args:
        text: JSON; an empty text is an empty object.
        comments: Whether comments and trailing commas are allowed.

    Raises:
        NotJsonError: It is not JSON.
    """
    return _parse(text, comments=comments).value


def set_member(text: str, path: Sequence[str], value: Any, *, comments: bool = False) -> str:
    """The text with another value at a path of keys; objects on the way are added.

    Raises:
        NotJsonError: It is not JSON, or something on the way is not an object.
    """
    text = text if text.strip() else "{}\n"
    node = _parse(text, comments=comments)
    for place, key in enumerate(path):
        _require_object(node, path[:place])
        found = _find(node, key)
        if found is None:
            for missing in reversed(path[place + 1 :]):
                value = {missing: value}
            return _insert(text, node, f"{json.dumps(key, ensure_ascii=False)}: ", value)
        node = found
    return text[: node.start] + _dump(value, _indent_at(text, node.start), _unit(text)) + text[node.end :]


def append_item(text: str, key: str, value: Any, *, comments: bool = False) -> str:
    """The text with one more item in the array of a key, which is added if it is missing.

    Raises:
        NotJsonError: It is not JSON, or the value is not an array.
    """
    node = _find(_parse(text, comments=comments), key)
    if node is None:
        return set_member(text, (key,), [value], comments=comments)
    if not isinstance(node.value, list):
        raise NotJsonError(f"{key!r} is not an array")
    return _insert(text, node, "", value)


def remove_at(text: str, path: Sequence[str | int], *, comments: bool = False) -> str:
    """The text without the member or the item at a path; as it was if there is none."""
    node = _parse(text, comments=comments)
    for key in path[:-1]:
        found = _find(node, key)
        if found is None:
            return text
        node = found
    place = _place(node, path[-1])
    if place is None:
        return text
    _, start, member = node.members[place]
    if place + 1 < len(node.members):
        return text[:start] + text[node.members[place + 1][1] :]
    if place:
        return text[: node.members[place - 1][2].end] + text[node.trailing or member.end :]
    return text[: node.start + 1] + text[node.end - 1 :]


def _insert(text: str, node: _Node, key: str, value: Any) -> str:
    unit, outer = _unit(text), _indent_at(text, node.start)
    inner = _indent_at(text, node.members[0][1]) if node.members else outer + unit
    written = key + _dump(value, inner, unit)
    if not node.members:
        return f"{text[: node.start + 1]}\n{inner}{written}\n{outer}{text[node.end - 1 :]}"
    last = node.members[-1][2].end
    if node.trailing is not None:
        return f"{text[: node.trailing]}\n{inner}{written}{text[node.trailing :]}"
    return f"{text[:last]},\n{inner}{written}{text[last:]}"


def _dump(value: Any, indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _find(node: _Node, key: str | int) -> _Node | None:
    place = _place(node, key)
    return None if place is None else node.members[place][2]


def _place(node: _Node, key: str | int) -> int | None:
    if isinstance(key, int):
        return key if key < len(node.members) else None
    return next((place for place, (name, _, _) in enumerate(node.members) if name == key), None)


def _require_object(node: _Node, path: Sequence[str]) -> None:
    if not isinstance(node.value, dict):
        raise NotJsonError(f"{'.'.join(path) or 'the document'} is not an object")


def _parse(text: str, *, comments: bool) -> _Node:
    if not text.strip():
        return _Node({}, 0, 0)
    reader = _Reader(text, comments=comments)
    node = reader.value(reader.skip(0), 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise reader.fault(end, "text follows the document")
    return node


class _Reader:
    """Reads values with their places.

    Args:
        text: What is read.
        comments: Whether comments and trailing commas are allowed.
    """

    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments

    def fault(self, place: int, problem: str) -> NotJsonError:
        """What is wrong, with its line."""
        return NotJsonError(f"line {self._text.count(chr(10), 0, place) + 1}: {problem}")

    def skip(self, place: int) -> int:
        """The end of white space and comments."""
        found = _SPACE.match(self._text, place)
        end = place if found is None else found.end()
        if not self._comments and _COMMENT.search(self._text, place, end):
            raise self.fault(place, "a comment, which this program does not allow in its file")
        return end

    def value(self, place: int, depth: int) -> _Node:
        """The value that begins at a place."""
        if depth > _DEEPEST:
            raise self.fault(place, f"more than {_DEEPEST} values inside of each other")
        begin = self._text[place : place + 1]
        if begin in {"{", "["}:
            return self._container(place, depth, begin == "{")
        found = (_STRING if begin == '"' else _SCALAR).match(self._text, place)
        if found is None:
            raise self.fault(place, "a value is expected")
        try:
            return _Node(json.loads(found[0], strict=False), place, found.end())
        except ValueError as problem:
            raise self.fault(place, "the value is not JSON") from problem

    def _container(self, place: int, depth: int, is_object: bool) -> _Node:
        node = _Node({} if is_object else [], place)
        close = "}" if is_object else "]"
        place = self.skip(place + 1)
        while self._text[place : place + 1] != close:
            if node.members and node.trailing is None:
                raise self.fault(place, "a comma is missing")
            place = self.skip(self._member(node, place, depth, is_object))
            node.trailing = None
            if self._text[place : place + 1] == ",":
                node.trailing = place + 1
                place = self.skip(place + 1)
        if node.trailing is not None and not self._comments:
            raise self.fault(place, "a comma before the end, which this program does not allow in its file")
        node.end = place + 1
        return node

    def _member(self, node: _Node, place: int, depth: int, is_object: bool) -> int:
        """Read one member; its end."""
        start, key = place, ""
        if is_object:
            if self._text[place : place + 1] != '"':
                raise self.fault(place, "a name in double quotes is expected")
            named = self.value(place, depth)
            key, place = str(named.value), self.skip(named.end)
            if key in node.value:
                raise self.fault(start, f"{key!r} is there twice")
            if self._text[place : place + 1] != ":":
                raise self.fault(place, "a colon is expected")
            place = self.skip(place + 1)
        member = self.value(place, depth + 1)
        node.members.append((key, start, member))
        if is_object:
            node.value[key] = member.value
        else:
            node.value.append(member.value)
        return member.end

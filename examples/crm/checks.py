"""Read JSON that a client sent, collecting every problem so that one reply names them all.

This module knows shapes only: objects, arrays, names and values of a kind. What the values mean is checked by others,
who add to the same `Problems`.
"""

import difflib
import json
from collections.abc import Collection, Iterable, Sequence

from examples.crm.errors import Choice, Detail, InvalidRequestError
from examples.crm.values import Json, Kind, Stored, encode


def parse_json(body: bytes) -> Json:
    """The JSON document in a request's body.

    Raises:
        InvalidRequestError: the body is not JSON in UTF-8, or is nested too deeply.
    """
    try:
        parsed: Json = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        detail = Detail("body", f"not valid JSON: {reason}")
        raise InvalidRequestError(f"the body is not valid JSON: {reason}", [detail]) from None
    return parsed


def join(path: str, name: str) -> str:
    """The path of a member; the body itself has the path `""`."""
    return f"{path}.{name}" if path else name


class Problems:
    """What is wrong with one request.

    The readers below return an empty value after they noted a problem, so that checking can go on; `stop` then raises.
    """

    def __init__(self) -> None:
        self._details: list[Detail] = []

    def add(self, path: str, problem: str, allowed: Sequence[Choice] = ()) -> None:
        """Note one problem."""
        self._details.append(Detail(path or "body", problem, allowed))

    def stop(self) -> None:
        """Do nothing if all is well.

        Raises:
            InvalidRequestError: at least one problem was noted.
        """
        if not self._details:
            return
        first = self._details[0]
        count = len(self._details)
        lead = "" if count == 1 else f"{count} problems, the first: "
        raise InvalidRequestError(f"{lead}{first.path}: {first.problem}", self._details)

    def mapping(
        self, value: Json, path: str, *, known: Collection[str], required: Iterable[str] = ()
    ) -> dict[str, Json]:
        """The object at `path`, without the members that are not known."""
        if not isinstance(value, dict):
            self.add(path, f"an object is wanted, not {_kind_of(value)}")
            return {}
        for name in required:
            if name not in value:
                self.add(join(path, name), "is required")
        for name in value:
            if name not in known:
                self.unknown(join(path, name), f"there is no member {name!r} here", name, known)
        return {name: member for name, member in value.items() if name in known}

    def sequence(self, value: Json, path: str, *, least: int, most: int, noun: str) -> list[Json]:
        """The array at `path`, if it has between `least` and `most` items; `noun` names the items in messages."""
        if not isinstance(value, list):
            self.add(path, f"an array of {noun} is wanted, not {_kind_of(value)}")
        elif len(value) > most:
            self.add(path, f"{len(value)} {noun} were sent; at most {most} are allowed in one request")
        elif len(value) < least:
            self.add(path, f"at least {least} of the {noun} must be sent")
        else:
            return value
        return []

    def whole(self, value: Json, path: str, *, least: int, most: int) -> int:
        """The whole number at `path`."""
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.add(path, f"a whole number between {least} and {most} is wanted")
        return least

    def value(self, kind: Kind, value: Json, path: str) -> Stored:
        """The stored form of the value at `path`, or None after a problem."""
        try:
            return encode(kind, value)
        except ValueError as error:
            self.add(path, str(error))
            return None

    def choice(self, value: Json, path: str, noun: str, known: Collection[str]) -> str | None:
        """The name at `path`, if it is one of the known ones."""
        if isinstance(value, str) and value in known:
            return value
        self.unknown(path, f"{value!r} is not {noun}" if isinstance(value, str) else f"{noun} is wanted", value, known)
        return None

    def unknown(self, path: str, problem: str, name: Json, known: Collection[str]) -> None:
        """Note an unknown name with the closest known ones, or with all of them if none is close."""
        close = difflib.get_close_matches(name, known, n=3) if isinstance(name, str) else []
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        self.add(path, problem + hint, [Choice(candidate) for candidate in close or known])


def _kind_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")

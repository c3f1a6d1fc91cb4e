"""How large a value may be that a workflow makes: what is written down once can be read many times.

A step that puts out ten times what another one has put out costs a line; ten such steps would make ten thousand million
values of one. They share their parts in memory and fall apart when they are written down, so they are counted as they
would be written, and no further than to the limit. What tools bring has limits of its own. Pure.
"""

from typing import Final

from toolcrib.contracts import InvalidExpression, Json
from toolcrib.core.expressions.values import is_list, is_object

MAX_MADE: Final = 16 * 2**20
"""Characters of one value, about as JSON has them."""

_SCALAR = 4
"""Characters of a number, about, with what stands around it."""


def held(value: Json) -> Json:
    """The value, if it is not too large.

    Raises:
        InvalidExpression: It is.
    """
    if is_too_large(value):
        raise InvalidExpression(f"the value would be longer than {MAX_MADE:,} characters; select less data first")
    return value


def is_too_large(value: Json) -> bool:
    """Whether a value would be longer than `MAX_MADE` if it were written down."""
    left, waiting = MAX_MADE, [value]
    while waiting and left >= 0:
        part = waiting.pop()
        if is_object(part):
            left -= sum(map(len, part)) + _SCALAR * (len(part) + 1)
            waiting += part.values() if left >= 0 else ()
        elif is_list(part):
            left -= len(part) + _SCALAR
            waiting += part if left >= 0 else ()
        else:
            left -= len(part) + _SCALAR if isinstance(part, str) else _SCALAR
    return left < 0

"""Answers of models, and what is read from them."""

from typing import Any

from toolcrib.llm.text import UNDEFINED, parse

U = UNDEFINED


def block(code: str, fence: str = "```", info: str = "tool") -> str:
    """Code in a fence."""
    return f"{fence}{info}\n{code}\n{fence}"


def calls(text: str) -> list[tuple[Any, ...]]:
    """The calls of an answer without problems: name, arguments, and those by name if there are any."""
    found = parse(text)
    assert [str(one.problem) for one in found if one.problem] == []
    return [
        (call.name, list(call.arguments), *([call.named] if call.named else [])) for one in found for call in one.calls
    ]


def arguments(code: str) -> list[Any]:
    """The arguments of the one call `f(code)`."""
    [(name, found)] = calls(block(f"return f({code});"))
    assert name == "f"
    return found


def problems(text: str) -> list[str]:
    """The problems of an answer; a block with a problem has no call."""
    found = parse(text)
    assert all(not one.calls for one in found if one.problem)
    return [str(one.problem) for one in found if one.problem]


def refusal(code: str) -> str:
    """The one problem of a block with this code."""
    [problem] = problems(block(code))
    return problem

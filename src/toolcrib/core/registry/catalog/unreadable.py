"""What is stored and cannot be read: a definition that another release of Toolcrib has saved.

One such definition must not take the others with it: it stays in the catalogue, blocked, with the reason.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from toolcrib.contracts import PythonImplementation, ToolDefinition

_UNKNOWN = "extra_forbidden"
_MOST_SHOWN = 3


def why_unreadable(problem: ValidationError) -> str:
    """What is wrong with a stored body, as the end of a sentence about it; no value of it is repeated."""
    found = problem.errors(include_url=False, include_context=False, include_input=False)
    newer = [error for error in found if error["type"] == _UNKNOWN]
    if newer:
        fields = _listed([_place(error["loc"]) for error in newer])
        return f"was saved by a newer release, which knows {fields}; upgrade this one, or save it anew without that"
    first = found[0]
    return f"cannot be read by this release: {_place(first['loc'])}: {first['msg']}; save it anew"


def stand_in(name: str, version: str) -> ToolDefinition:
    """What stands in the catalogue for a definition that cannot be read: it has the name, and does nothing."""
    return ToolDefinition(
        name=name,
        version=version,
        enabled=False,
        description="Saved by another release; it cannot be read, and calls of it are denied.",
        implementation=PythonImplementation(function=name),
    )


def _place(location: Sequence[str | int]) -> str:
    return repr(".".join(map(str, location)))


def _listed(places: Sequence[str]) -> str:
    shown = ", ".join(places[:_MOST_SHOWN])
    return shown if len(places) <= _MOST_SHOWN else f"{shown} and {len(places) - _MOST_SHOWN} more fields"

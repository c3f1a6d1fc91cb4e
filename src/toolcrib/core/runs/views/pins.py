"""Pinned handles: named outputs of an agent that one tool's calls fill (001, section 4.2).

A pin names a tool; whether that tool is enabled, allotted or still there does not matter to it. This module only reads:
which call fills a handle, and what it holds if none does.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from toolcrib.contracts import InvalidDefinition, Json, PinnedHandle, PinSelector, ToolEnvelope


def check_pins(agent: str, pins: Sequence[PinnedHandle]) -> None:
    """Refuse pins that cannot be told apart or select nothing. The tools that they name need not exist.

    Raises:
        InvalidDefinition: Names the handle and what to change.
    """
    names = [pin.name for pin in pins]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"agent {agent!r} has two pinned handles of the name {twice[0]!r}; give each a name of its own"
        raise InvalidDefinition(msg)
    for pin in pins:
        named = pin.selector.call_id is not None
        if named != (pin.selector.strategy == "by_call_id"):
            msg = (
                f"pinned handle {pin.name!r} of agent {agent!r} has strategy {pin.selector.strategy!r} and "
                f"{'a' if named else 'no'} call_id; give a call_id with by_call_id, and with nothing else"
            )
            raise InvalidDefinition(msg)


def resolve_pins(
    pins: Iterable[PinnedHandle], calls: Sequence[ToolEnvelope], earlier: Mapping[str, Json]
) -> dict[str, Json]:
    """What every handle holds: the output of the call that fills it, always all of them.

    Args:
        pins: The handles.
        calls: The calls of the run, in the order in which they began.
        earlier: What handles held before, by name; null for those that are not among them.
    """
    found = {pin.name: selected(pin.selector, calls) for pin in pins}
    return {name: call.output if call is not None else earlier.get(name) for name, call in found.items()}


def unfilled(pins: Iterable[PinnedHandle], calls: Sequence[ToolEnvelope]) -> Sequence[PinnedHandle]:
    """The handles that no call fills."""
    return [pin for pin in pins if selected(pin.selector, calls) is None]


def selected(selector: PinSelector, calls: Sequence[ToolEnvelope]) -> ToolEnvelope | None:
    """The call that a selector means; one that was denied or skipped was never executed, and fills nothing."""
    executed = [call for call in calls if call.name == selector.tool and call.status in {"success", "error"}]
    match selector.strategy:
        case "latest":
            return executed[-1] if executed else None
        case "first_success":
            return next((call for call in executed if call.ok), None)
        case "by_call_id":
            return next((call for call in executed if call.call_id == selector.call_id), None)
        case _:
            assert_never(selector.strategy)

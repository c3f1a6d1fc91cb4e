"""Two runs side by side, as tables: in numbers, where they part, and what differs."""

import json
from collections.abc import Iterable

from toolcrib.contracts import Json
from toolcrib.contracts.runs.comparisons import CallDiff, RunDiff, RunFacts, ValueDiff
from toolcrib.interfaces.cli.render.console import console, money, plain
from toolcrib.interfaces.cli.render.tables import print_rows

_LONGEST = 120
"""Characters of a value; with `--json` it is whole."""


def print_diff(found: RunDiff) -> None:
    """What is to be seen at a glance first, and then all that differs."""
    rows = zip(_NUMBERS, _numbers(found.before), _numbers(found.after), strict=True)
    print_rows(("", found.before.run_id, found.after.run_id), list(rows))
    console().print(plain(_parting(found)))
    _print("Output", ("Where", "Before", "After"), map(_value, found.output))
    _print("Calls", ("Call", "What", "Before", "After"), map(_call, found.calls))
    answers = ((each.position, _short(each.before), _short(each.after)) for each in found.answers)
    _print("Answers", ("Answer", "Before", "After"), answers)
    decisions = ((each.position, each.kind, each.before or "", each.after or "") for each in found.decisions)
    _print("Decisions", ("Call", "Whose", "Before", "After"), decisions)


_NUMBERS = ("Status", "Ended by", "Models", "Calls of models", "Calls of tools", "Taken over", "Tokens", "Cost", "Time")


def _numbers(facts: RunFacts) -> tuple[str, ...]:
    return (
        facts.status.replace("_", " "),
        (facts.stop_reason or "").replace("_", " "),
        ", ".join(facts.models),
        str(facts.model_calls),
        str(facts.tool_calls),
        str(facts.taken),
        f"{facts.tokens:,}",
        f"{money(facts.cost_usd)}{' or more' if facts.cost_unknown else ''}",
        f"{facts.seconds:.2f} s",
    )


def _parting(found: RunDiff) -> str:
    parting = found.parting
    if parting is None:
        return "They went the same way."
    where = "at their ends" if parting.position is None else f"at {parting.position}"
    events = ", ".join(
        f"event {number} of {facts.run_id}"
        for number, facts in ((parting.before, found.before), (parting.after, found.after))
        if number is not None
    )
    return f"They part {where}: {events}."


def _print(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    listed = list(rows)
    if listed:
        console().print(plain(f"\n{title}", "bold"))
        print_rows(columns, listed)


def _value(diff: ValueDiff) -> tuple[str, ...]:
    return diff.path or "all of it", _short(diff.before), _short(diff.after)


def _call(diff: CallDiff) -> tuple[str, ...]:
    before, after = diff.statuses
    what = diff.change.replace("_", " ")
    where = "; ".join(f"{each.path}: {_short(each.before)} -> {_short(each.after)}" for each in diff.arguments[:3])
    return (
        diff.position,
        f"{what}: {where}" if where else what,
        f"{diff.before} {before}" if diff.before else "",
        f"{diff.after} {after}" if diff.after else "",
    )


def _short(value: Json) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

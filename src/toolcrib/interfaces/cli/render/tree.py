"""Draws a trace as a tree of steps, with a run's progress events as lines.

Unknown kinds of progress, such as those of an application, are printed as they are.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, assert_never, cast

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from toolcrib.contracts import (
    ApprovalStep,
    HandoffStep,
    Json,
    JsonObject,
    LimitStep,
    LLMStep,
    ProgressStep,
    Purpose,
    ResumptionStep,
    SignalStep,
    Step,
    SuspensionStep,
    ToolError,
    ToolStep,
    Trace,
)
from toolcrib.contracts.runs.trace import Settlement
from toolcrib.contracts.workflows import STEP_SETTLED, TAKEN_UP
from toolcrib.core.runs import clip_text, shorten_json
from toolcrib.interfaces.cli.render.console import duration, money, plain

_HEADINGS = {
    "reference_data": "Reference Data",
    "schema_drift": "Schema Drift",
    "tools_allotted": "Tools Allotted",
    "tools_found": "Tools Found",
    TAKEN_UP: "Continued",
}
_SHORT_ID = 12
"""Characters of a snapshot's id."""


def heading_of(step: ProgressStep) -> str:
    """The title of a step."""
    if step.kind == STEP_SETTLED:
        return f"Step: {step.data['step']} {step.data['status']}"
    return _HEADINGS.get(step.kind, f"Progress: {step.kind}")


def lines_of(step: ProgressStep) -> Iterator[tuple[str, str]] | None:
    """Its lines; null for a kind that is not known."""
    match step.kind:
        case "reference_data":
            return _reference(step.data)
        case "schema_drift":
            return (("Change", change["message"]) for change in step.data["changes"])
        case "tools_allotted":
            return iter([("For", step.data["allotted"]), ("Tools", str(step.data["tools"]))])
        case "tools_found":
            return iter([("Query", step.data["query"]), ("Found", ", ".join(step.data["found"]) or "none")])
        case kind if kind == STEP_SETTLED:
            return _step_end_lines(step.data)
        case kind if kind == TAKEN_UP:
            return iter([("Run", step.data["run_id"]), ("Stands", ", ".join(step.data["steps"]) or "nothing")])
        case _:
            return None


def _step_end_lines(data: JsonObject) -> Iterator[tuple[str, str]]:
    if "reason" in data:
        yield "Reason", data["reason"]
    if "items" in data:
        yield "Elements", f"{data['items']}, {data.get('failed', 0)} failed"
    if "tries" in data:
        yield "Tries", str(data["tries"])
    if "error" in data:
        yield "Error", data["error"]["message"]
    if "reused" in data:
        yield "Taken over from", data["reused"]


def _reference(data: JsonObject) -> Iterator[tuple[str, str]]:
    yield "List", f"{data['name']}, {data['size']} values"
    yield "Snapshot", f"{data['id'][:_SHORT_ID]}, {data['age_s']:.0f} s old"
    if data["warning"]:
        yield "Warning", data["warning"]


Line: TypeAlias = tuple[str, str]
"""A label and the text after it."""

_PURPOSES: Final[dict[Purpose, str]] = {
    "planning": "Planning",
    "tool_selection": "Tool Selection",
    "result_review": "Result Review",
    "error_recovery": "Error Recovery",
    "formatting": "Formatting",
    "answer": "Answer",
    "summary": "Summary",
    "verification": "Second Reading",
    "question": "Question",
}
_KINDS: Final = {
    "tool": "Tool",
    "code": "Code",
    "composite": "Composite Tool",
    "agentic": "Agentic Tool",
    "agent": "Agent",
    "workflow": "Workflow",
}
_MARKS: Final = {"completed": "✓", "failed": "✗", "timed_out": "✗", "incomplete": "✗", "cancelled": "✗"}
_COLOURS: Final = {
    "completed": "green",
    "success": "green",
    "failed": "red",
    "error": "red",
    "denied": "red",
    "timed_out": "red",
    "incomplete": "yellow",
    "rejected": "red",
}
_LONGEST: Final = 240
"""Characters of one line."""
_MOST_LINES: Final = 12
"""Lines of what a run did that did not complete."""
_LEFT_OUT: Final = re.compile(r"… \d+ more of (\d+)")


def draw(trace: Trace, *, full: bool = False) -> RenderableType:
    """The whole trace: what ran, step by step, and the answer.

    Args:
        trace: The trace.
        full: Whether what a run did that did not complete is printed whole; otherwise its first lines are.
    """
    lines = None if full or trace.status == "completed" else _MOST_LINES
    parts: list[RenderableType] = [*_header(trace), Text(), _tree(trace, Text("Execution Trace:", style="bold"))]
    if trace.error is not None:
        parts += [Text(), Text("Error:", style="bold red"), plain(_error(trace.error))]
    parts += [plain(f"Warning: {warning}", "yellow") for warning in trace.warnings]
    if trace.output is not None:
        parts += [Text(), Text("Final Response:", style="bold"), plain(_answer(trace.output, lines))]
    if trace.partial is not None:
        parts += [Text(), Text("Done before the end:", style="bold"), plain(_answer(trace.partial, lines))]
    return Group(*parts)


def _header(trace: Trace) -> Iterator[Text]:
    mode = f" ({trace.mode})" if trace.mode else ""
    yield _with_label(_KINDS[trace.kind], f"{trace.tool}{mode}", style="bold")
    yield _with_label("Run", trace.run_id)
    yield _with_label("Request", _quote(trace.task))
    status = f"{trace.status} {_MARKS.get(trace.status, '')}".strip()
    reason = f" ({trace.stop_reason})" if trace.stop_reason not in {None, "final_answer"} else ""
    yield _with_label("Status", status + reason, style=_COLOURS.get(trace.status, "yellow"))
    waited = f" (active {duration(trace.active_ms)})" if trace.duration_ms - trace.active_ms >= 1000 else ""
    yield _with_label("Duration", duration(trace.duration_ms) + waited)
    lower_bound = " or more: a price is unknown" if trace.cost_unknown and trace.cost is not None else ""
    yield _with_label("Cost", money(trace.cost) + lower_bound)
    if trace.cut_off is not None:
        yield _with_label("Cut off", f"{money(trace.cut_off.upper_usd)} at most, apart from the cost")
    yield _with_label("Tokens", f"{trace.tokens:,}")


def _tree(trace: Trace, label: RenderableType) -> Tree:
    tree = Tree(label)
    for step in trace.steps:
        branch = tree.add(_title(step))
        for name, text in _lines(step):
            branch.add(_with_label(name, text))
        if isinstance(step, ToolStep) and step.child is not None:
            branch.add(_tree(step.child, Group(*_header(step.child))))
    return tree


def _title(step: Step) -> Text:
    title = plain(f"[{step.number}] {_step_name(step)}", "bold")
    status = getattr(step, "status", None)
    if status is not None and status != "success" and not isinstance(step, SuspensionStep):
        title.append(f" {status}", style=_COLOURS.get(status, "yellow"))
    return title


def _step_name(step: Step) -> str:
    match step:
        case LLMStep():
            return f"Embedded LLM {_PURPOSES[step.purpose]} ({step.model})"
        case ToolStep():
            return f"Tool Call: {step.action}"
        case ApprovalStep():
            return f"Approval: {step.action}"
        case HandoffStep():
            return f"Client: {step.action}"
        case SuspensionStep():
            return f"Suspended: {step.status}"
        case ResumptionStep():
            return f"Resumed: {step.cause}"
        case SignalStep():
            return f"Signal: {step.name}"
        case LimitStep():
            return f"Limit: {step.limit}"
        case ProgressStep():
            return heading_of(step)
        case _:
            assert_never(step)


def _lines(step: Step) -> Iterator[Line]:
    match step:
        case LLMStep():
            return _model_lines(step)
        case ToolStep():
            return _tool_lines(step)
        case ApprovalStep() | HandoffStep() | SuspensionStep() | SignalStep():
            return _wait_lines(step)
        case LimitStep():
            return iter([("Message", step.message)])
        case ProgressStep():
            return lines_of(step) or iter([("Data", _compact(step.data))])
        case ResumptionStep():
            return iter(())
        case _:
            assert_never(step)


def _model_lines(step: LLMStep) -> Iterator[Line]:
    if step.input:
        yield "Input", _quote(step.input.partition("\n\n")[0])
    for failure in step.failures:
        then = "gave up" if failure.retry_in_s is None else f"tried again after {failure.retry_in_s:.1f}s"
        then = then if failure.fallback is None else f"asked {failure.fallback} instead"
        yield f"Attempt {failure.attempt}", f"{failure.kind}: {failure.message}; {then}"
    if step.reasoning:
        yield "Reasoning", _quote(step.reasoning)
    if step.decision:
        yield "Decision", step.decision if step.decision.startswith(("{", "call ")) else _quote(step.decision)
    if step.status == "success":
        yield "Tokens", f"{step.tokens:,} (input: {step.input_tokens:,}, output: {step.output_tokens:,})"
        lacks = f", without {', '.join(step.not_priced)}" if step.not_priced else ""
        yield "Cost", money(step.cost) + lacks
        yield "Duration", duration(step.latency_ms)


def _tool_lines(step: ToolStep) -> Iterator[Line]:
    yield "Parameters", _compact(step.parameters)
    if step.approved_parameters is not None:
        yield "Approved", _compact(step.approved_parameters)
    yield from _outcome_lines(step)
    if step.settled is not None:
        yield "Settled", _settlement_text(step.settled)
    paging = step.metadata.get("paging")
    if paging:
        yield "Pages", f"{paging['pages']}{'' if paging['complete'] else ', more were left'}"
    if step.attempts > 1:
        yield "Attempts", str(step.attempts)
    if step.repeats:
        yield "Repeated", f"{step.repeats} times after a crash" if step.repeats > 1 else "once after a crash"
    if step.cached:
        yield "Cached", "yes"
    if step.reused is not None:
        yield "Taken over from", step.reused
    if step.latency_ms is not None:
        yield "Duration", duration(step.latency_ms)
    if step.cost is not None:
        yield "Cost", money(step.cost)


def _wait_lines(step: ApprovalStep | HandoffStep | SuspensionStep | SignalStep) -> Iterator[Line]:
    match step:
        case ApprovalStep():
            yield from _approval_lines(step)
        case HandoffStep():
            yield "Position", step.position
            yield "Payload", _compact(step.payload)
            yield from _outcome_lines(step)
        case SuspensionStep():
            yield "Waiting for", ", ".join(step.waiting_for)
        case SignalStep() if step.payload is not None:
            yield "Payload", _compact(step.payload)
        case SignalStep():
            return
    if not isinstance(step, SuspensionStep) and step.made_by is not None:
        yield "By", step.made_by


def _approval_lines(step: ApprovalStep) -> Iterator[Line]:
    yield "Position", step.position
    yield "Parameters", _compact(step.parameters)
    if step.edited_parameters is not None:
        yield "Edited", _compact(step.edited_parameters)
    if step.reason:
        yield "Reason", _quote(step.reason)


def _outcome_lines(step: ToolStep | HandoffStep) -> Iterator[Line]:
    if step.error is not None:
        yield "Error", _error(step.error)
    elif step.status == "success":
        yield "Result", _gist(step.result)


def _settlement_text(settled: Settlement) -> str:
    statement = f"it took effect: {_gist(settled.output)}" if settled.happened else "it did not take effect"
    return f"{settled.made_by} has said since that {statement}{f' ({settled.reason})' if settled.reason else ''}"


def _with_label(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{label}: ", "dim"), plain(clip_text(" ".join(text.split()), _LONGEST), style))


def _quote(text: str) -> str:
    return f'"{clip_text(" ".join(text.split()), _LONGEST)}"'


def _compact(value: Json) -> str:
    return json.dumps(shorten_json(value, _LONGEST), ensure_ascii=False)


def _error(error: ToolError) -> str:
    return f"{error.code.value}: {error.message}"


def _gist(value: Json) -> str:
    """What a result is, in one line: `total: 237, results: 237 items`."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return ", ".join(f"{name}: {_short(member)}" for name, member in members.items())
    return _short(value)


def _short(value: Json) -> str:
    if isinstance(value, list):
        return f"{_length(cast('list[Json]', value))} items"
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    return value if isinstance(value, str) else json.dumps(value)


def _length(items: Sequence[Json]) -> int:
    """How long a list was before it was shortened."""
    found = _LEFT_OUT.fullmatch(items[-1]) if items and isinstance(items[-1], str) else None
    return int(found[1]) if found else len(items)


def _answer(output: Json, most_lines: int | None) -> str:
    members = cast("JsonObject", output) if isinstance(output, dict) else {}
    text = members.get("summary") or members.get("question")
    whole = f'"{text}"' if isinstance(text, str) else json.dumps(output, indent=2, ensure_ascii=False)
    lines = whole.splitlines()
    if most_lines is None or (len(lines) <= most_lines and len(whole) <= most_lines * _LONGEST):
        return whole
    shown = [clip_text(line, _LONGEST) for line in lines[:most_lines]]
    more = len(lines) - len(shown)
    rest = f"… {more} more lines" if more > 0 else "…"
    return "\n".join([*shown, f"{rest}; --full prints all"])

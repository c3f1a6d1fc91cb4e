"""What a run told on its way, as lines of its tree: lists that it uses, schemas that have changed, steps that ended.

A kind that is not known here, such as an application's own, is shown as it is.
"""

from collections.abc import Iterator

from toolcrib.contracts import JsonObject, ProgressStep
from toolcrib.contracts.workflows import STEP_SETTLED, TAKEN_UP

_HEADINGS = {
    "reference_data": "Reference Data",
    "schema_drift": "Schema Drift",
    "tools_allotted": "Tools Allotted",
    "tools_found": "Tools Found",
    TAKEN_UP: "Taken Up",
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
            return _settled(step.data)
        case kind if kind == TAKEN_UP:
            return iter([("Run", step.data["run_id"]), ("Stands", ", ".join(step.data["steps"]) or "nothing")])
        case _:
            return None


def _settled(data: JsonObject) -> Iterator[tuple[str, str]]:
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

"""How the tree of a run shows what the run told on its way."""

from typing import Any

import pytest

from tests.unit.runs_trace.house import AT
from toolcrib.contracts import ProgressStep
from toolcrib.interfaces.cli.render.tree import heading_of, lines_of

READ: dict[str, Any] = {"name": "stages", "size": 12, "id": "afc9f7e322891c72", "age_s": 60.2, "warning": None}


@pytest.mark.requirement("cli.tree")
@pytest.mark.parametrize(
    ("kind", "data", "heading", "lines"),
    [
        ("reference_data", READ, "Reference Data", ["List: stages, 12 values", "Snapshot: afc9f7e32289, 60 s old"]),
        (
            "reference_data",
            {**READ, "warning": "it is old"},
            "Reference Data",
            ["List: stages, 12 values", "Snapshot: afc9f7e32289, 60 s old", "Warning: it is old"],
        ),
        (
            "schema_drift",
            {"changes": [{"message": "deals: a was removed"}]},
            "Schema Drift",
            ["Change: deals: a was removed"],
        ),
        ("tools_allotted", {"allotted": "shop.*", "tools": 45}, "Tools Allotted", ["For: shop.*", "Tools: 45"]),
        ("tools_found", {"query": "refund", "found": ["a", "b"]}, "Tools Found", ["Query: refund", "Found: a, b"]),
        ("tools_found", {"query": "refund", "found": []}, "Tools Found", ["Query: refund", "Found: none"]),
    ],
)
def test_what_the_crib_itself_tells_has_lines_of_its_own(kind: str, data: Any, heading: str, lines: list[str]) -> None:
    step = ProgressStep(kind=kind, number=1, data=data, started_at=AT)

    assert heading_of(step) == heading
    assert [f"{name}: {text}" for name, text in lines_of(step) or ()] == lines


@pytest.mark.requirement("cli.tree", "workflow_reruns.traced")
@pytest.mark.parametrize(
    ("kind", "data", "heading", "lines"),
    [
        ("step_settled", {"step": "ship", "status": "succeeded", "positions": ["ship"]}, "Step: ship succeeded", []),
        (
            "step_settled",
            {"step": "pay", "status": "partial", "items": 3, "failed": 1, "tries": 2, "error": {"message": "no money"}},
            "Step: pay partial",
            ["Elements: 3, 1 failed", "Tries: 2", "Error: no money"],
        ),
        (
            "step_settled",
            {"step": "look", "status": "skipped", "reason": "not wanted", "reused": "run_1"},
            "Step: look skipped",
            ["Reason: not wanted", "Taken over from: run_1"],
        ),
        ("taken_up", {"run_id": "run_1", "steps": ["a", "b"]}, "Continued", ["Run: run_1", "Stands: a, b"]),
        ("taken_up", {"run_id": "run_1", "steps": []}, "Continued", ["Run: run_1", "Stands: nothing"]),
    ],
)
def test_what_a_workflow_tells_of_its_steps_has_lines_of_its_own(
    kind: str, data: Any, heading: str, lines: list[str]
) -> None:
    step = ProgressStep(kind=kind, number=1, data=data, started_at=AT)

    assert heading_of(step) == heading
    assert [f"{name}: {text}" for name, text in lines_of(step) or ()] == lines


@pytest.mark.requirement("cli.tree")
def test_what_an_application_tells_is_shown_as_it_is() -> None:
    step = ProgressStep(kind="percent", number=1, data=50, started_at=AT)

    assert (heading_of(step), lines_of(step)) == ("Progress: percent", None)

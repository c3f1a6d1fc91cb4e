"""The contracts as others see them: their JSON Schemas, committed, and the events that old releases wrote."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, cast, get_args

import jsonschema_rs
import pytest
from pydantic import TypeAdapter

from toolcrib.contracts import (
    OWNER,
    SCHEMA_VERSION,
    AdoptedTool,
    AgentDefinition,
    AgentOutputs,
    AgentRequest,
    AgentResponse,
    Answer,
    Approval,
    ApprovalDecision,
    ApprovalPreview,
    CandidateResult,
    ClientResult,
    ContainsCheck,
    Contract,
    Dependent,
    Difference,
    Divergence,
    Evaluation,
    EvaluationChange,
    EvaluationDataset,
    EvaluationFigures,
    EvaluationOutcome,
    EvaluationTask,
    Event,
    ImpactReport,
    ImportOutcome,
    Limits,
    LLMConfig,
    LLMStep,
    Loss,
    LossReport,
    OpenQuestion,
    OperationImport,
    PinnedHandle,
    PinnedRun,
    PinSelector,
    PromptDifference,
    PromptRevision,
    PromptTest,
    ProviderDefinition,
    Record,
    Replay,
    ReturnedCall,
    Run,
    RunEvent,
    RunRequest,
    RunResult,
    StreamDone,
    StreamEvent,
    TextProposal,
    ToolChange,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolProposal,
    ToolReview,
    ToolRevision,
    ToolStep,
    Trace,
    TrialCall,
)
from toolcrib.contracts.runs.comparisons import RunDiff
from toolcrib.contracts.schemas import DIALECT, contract_schemas, schema_files
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowDraft, WorkflowGraph, WorkflowInstance
from toolcrib.kinds.python.shape import PythonImplementation

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "schemas"
PAYLOADS = sorted((Path(__file__).parent / "payloads").glob("v*/*.json"))
SCHEMAS = contract_schemas()
EVENTS = get_args(get_args(Event)[0])

MOMENT = "2026-01-31T12:00:00.000000Z"
HASH = "sha256:" + "0" * 64


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def event_payload(type_: str) -> Any:
    return read(Path(__file__).parent / "payloads" / "v1" / f"{type_}.json")["event"]


ENVELOPE = ToolEnvelope.model_validate(event_payload("call_finished")["envelope"])
REQUEST = RunRequest(kind="tool", tool="search@1.0.0", content_hash=HASH, principal=OWNER)
DEFINITION = ToolDefinition(name="search", implementation=PythonImplementation(function="crm:search"))
WORKFLOW = WorkflowDefinition.model_validate(
    {
        "name": "fulfil",
        "steps": [
            {"name": "pack", "tool": "pack@^1", "for_each": "${input.orders}", "retry": {"count": 1}},
            {"name": "ask", "approval": {"message": "Ship?"}, "condition": {"ref": "is_late", "input": {"days": 3}}},
            {"name": "paid", "wait": {"signal": "paid"}, "depends_on": ["ask"], "on_error": {"go_to": "tell"}},
            {"name": "tell", "output": "${error.message}", "join": "always"},
        ],
        "output": "${pack}",
    }
)
CHANGE = ToolChange(
    tool="search",
    before=HASH,
    after=HASH,
    differences=(
        Difference(part="input", change_class="breaking", kind="removed", place="stage", message="was removed"),
    ),
)
STEP = {"number": 1, "position": "t1.llm", "started_at": MOMENT}
MODEL_STEP = {**STEP, "type": "llm_call", "purpose": "answer", "model": "m:1", "status": "success", "cost": "0.25"}
CALL_STEP = {**STEP, "type": "tool_call", "action": "deals", "version": "1.0.0", "status": "running"}
TRACE = Trace(
    run_id="run_2",
    kind="agentic",
    tool="deals@1.0.0",
    task="look",
    status="running",
    started_at=ENVELOPE.t_start,
    duration_ms=1,
    active_ms=1,
    steps=(LLMStep.model_validate(MODEL_STEP),),
)
RESULT = RunResult(run_id="run_1", status="completed", stop_reason="final_answer", output={"n": 1})

FIGURES = EvaluationFigures(
    runs=2, passed=1, cost_usd=None, cost_unknown=True, tokens=9, steps=2, tool_calls=1, p50_s=0.5, p95_s=1
)
TASK = EvaluationTask(id="look", input="Where is order 7?", checks=(ContainsCheck(text="shipped"),))
DIVERGENCE = Divergence(run_id="run_1", event=4, field="t1.c1.input", expected={"n": 1}, got={"n": 2})

WRITTEN: dict[str, Contract | Record] = {
    "AgentDefinition": AgentDefinition(name="deals", llm=LLMConfig(model="anthropic:claude-sonnet-4")),
    "AgentOutputs": AgentOutputs(response="done", tools_by_id={"a": ENVELOPE}, tool_order=("a",), last_tool=ENVELOPE),
    "AgentRequest": AgentRequest(run_id="run_1", tool_results=(ReturnedCall(call_id="t1.c1", output=[1]),)),
    "AgentResponse": AgentResponse(
        agent="deals@1.0.0", run_id="run_1", status="awaiting_client", tool_calls=(ENVELOPE,), handles={"found": None}
    ),
    "Answer": Answer(answer="Rafael Ortiz"),
    "Approval": Approval(
        approval_id="apr_1",
        realm="default",
        run_id="run_2",
        position="t1.c1",
        root_run_id="run_1",
        callers=("head@1.0.0", "deals@1.0.0"),
        call_id="c1",
        tool="pay",
        version="1.0.0",
        content_hash=HASH,
        arguments_hash=HASH,
        side_effects="writes",
        input={"usd": 5},
        requested_by="ann",
        acting="pay-bot",
        requested_at=ENVELOPE.t_start,
        status="edited",
        edited_input={"usd": 3},
    ),
    "ApprovalPreview": ApprovalPreview(
        title="Pay", side_effects="writes", arguments={"usd": 5}, method="POST", url="https://bank.example.com/pay"
    ),
    "ApprovalDecision": ApprovalDecision(approved=True, arguments_hash=HASH, content_hash=HASH),
    "ClientResult": ClientResult(output=[1]),
    "LLMConfig": LLMConfig(model="anthropic:claude-sonnet-4", temperature=0.2),
    "Limits": Limits(),
    "Evaluation": Evaluation(
        dataset="orders",
        base="desk@1.0.0",
        candidates=(CandidateResult(candidate="desk@1.0.0", total=FIGURES, tasks={"look": FIGURES}),),
        changes=(
            EvaluationChange(kind="regression", task="look", candidate="desk@1.1.0", passed=0, base_passed=1, runs=1),
        ),
        outcomes=(EvaluationOutcome(task="look", candidate="desk@1.0.0", attempt=1, passed=True),),
    ),
    "EvaluationDataset": EvaluationDataset(name="orders", tasks=(TASK,)),
    "ImpactReport": ImpactReport(
        tool="deals@1.0.0",
        content_hash=HASH,
        status="active",
        dependents=(
            Dependent(name="front@1.0.0", kind="composite", reference="deals", satisfied=True, path=("front", "deals")),
        ),
        runs=(PinnedRun(run_id="run_1", tool="front@1.0.0", status="awaiting_approval", content_hash=HASH),),
    ),
    "ImportOutcome": ImportOutcome(
        provider="crm", tools=(AdoptedTool(tool="deals", adoption="held", change=CHANGE, message="look at it"),)
    ),
    "LossReport": LossReport(
        format="OpenAPI 3.1.0",
        losses=(Loss(effect="dropped", kind="incoming", what="webhook paid", why="tools", places=("/webhooks/paid",)),),
        operations=(OperationImport(operation="GET /deals", place="/paths/~1deals/get", tool="deals"),),
    ),
    "OpenQuestion": OpenQuestion.model_validate(
        {
            "run_id": "run_1",
            "position": "update.preview",
            "question": "Two deals would be moved. Go on?",
            "reason": "unsure",
            "choices": [{"value": "yes", "label": "Yes", "outcome": "Both are moved."}],
            "assumptions": ["\"Rafael\" was read as owner 'Rafael Ortiz'."],
            "preview": {
                "step": "update",
                "tool": "update_deals@1.0.0",
                "calls": 1,
                "items": 2,
                "sample": [{"before": {"id": "d1"}, "after": {"id": "d1", "stage": "won"}}],
            },
        }
    ),
    "PinnedHandle": PinnedHandle(name="deals", selector=PinSelector(tool="search")),
    "Principal": OWNER,
    "PromptDifference": PromptDifference(tool="deals", older=1, newer=2, diff="-a\n+b"),
    "PromptRevision": PromptRevision.model_validate(
        {
            "revision": 1,
            "version": "1.0.0",
            "content_hash": HASH,
            "made_by": "owner",
            "created_at": MOMENT,
            "current": True,
            "changed": True,
            "system_prompt": "Do.",
        }
    ),
    "PromptTest": PromptTest(
        tool="deals",
        mode="agentic",
        model="m:1",
        input={"task": "look"},
        system_prompt="Do.",
        calls=(TrialCall(tool="search", input={"n": 1}),),
        cost_usd=Decimal("0.25"),
    ),
    "ProviderDefinition": ProviderDefinition(name="crm", base_url="https://crm.example"),
    "Replay": Replay(
        run_id="run_1", tool="deals@1.0.0", same=False, divergence=DIVERGENCE, status="completed", envelopes=(ENVELOPE,)
    ),
    "Run": Run.model_validate(
        {
            "run_id": "run_1",
            "realm": "default",
            "made_by": "owner",
            "status": "queued",
            "request": REQUEST,
            "created_at": MOMENT,
            "updated_at": MOMENT,
            "cost_usd": "0.25",
        }
    ),
    "RunDiff": RunDiff.model_validate(
        {
            "before": {"run_id": "run_1", "tool": "a@1.0.0", "content_hash": "sha256:1", "status": "completed"},
            "after": {"run_id": "run_2", "tool": "a@1.0.0", "content_hash": "sha256:1", "status": "failed"},
            "parting": {"position": "t1.c1", "before": 4},
            "output": [{"path": "/n", "before": 1, "after": "1"}],
            "calls": [{"position": "t1.c1", "change": "only_before", "before": "b@1.0.0"}],
        }
    ),
    "RunEvent": RunEvent.model_validate_json(PAYLOADS[0].read_bytes()),
    "RunRequest": REQUEST,
    "RunResult": RESULT,
    "StreamEvent": StreamDone(number=4, result=RESULT),
    "TextProposal": TextProposal(
        tool="deals",
        revision=1,
        text="system_prompt",
        source="generator",
        current="Do.",
        proposed="Do it.",
        diff="-Do.\n+Do it.",
        reason="it is clearer",
    ),
    "ToolDefinition": DEFINITION,
    "ToolEnvelope": ENVELOPE,
    "ToolError": ToolError.model_validate({"code": "TIMEOUT", "message": "too slow"}),
    "ToolReview": ToolReview(
        tool="search",
        provider="crm",
        status="blocked",
        current=DEFINITION,
        changed_by_person=False,
        proposal=ToolProposal(definition=DEFINITION, change=CHANGE, offered_at=ENVELOPE.t_start),
        diff="",
    ),
    "ToolRevision": ToolRevision.model_validate(
        {
            "definition": DEFINITION,
            "revision": 1,
            "content_hash": DEFINITION.content_hash(),
            "realm": "default",
            "made_by": "owner",
            "created_at": MOMENT,
        }
    ),
    "Trace": TRACE.model_copy(update={"steps": (ToolStep.model_validate({**CALL_STEP, "child": TRACE}),)}),
    "WorkflowDefinition": WORKFLOW,
    "WorkflowDraft": WorkflowDraft.model_validate(
        {"definition": WORKFLOW, "authored_by": "scribe", "revision": 2, "made_by": "owner", "created_at": MOMENT}
    ),
    "WorkflowGraph": WorkflowGraph.model_validate(
        {
            "workflow": "fulfil@1.0.0",
            "nodes": [{"name": "pack", "kind": "tool", "reference": "pack@^1", "state": "broken", "reason": "is gone"}],
            "edges": [{"source": "pack", "target": "output", "kind": "data", "reference": "pack", "path": "/output"}],
            "problems": [{"path": "/steps/0/tool", "message": "no tool", "suggestion": "pack_all", "step": "pack"}],
        }
    ),
    "WorkflowInstance": WorkflowInstance.model_validate(
        {
            "run_id": "run_2",
            "workflow": "fulfil@1.0.0",
            "content_hash": DEFINITION.content_hash(),
            "status": "awaiting_client",
            "rerun": {"run_id": "run_1", "mode": "from_step", "step": "ship"},
            "steps": [
                {"step": "pack", "status": "succeeded", "output": {"boxes": 2}, "reused": "run_1"},
                {
                    "step": "ship",
                    "status": "waiting",
                    "waits_for": [{"whom": "client", "name": "ship", "run_id": "run_2"}],
                },
            ],
            "cost_usd": Decimal("0.02"),
            "made_by": "owner",
            "created_at": MOMENT,
            "updated_at": MOMENT,
        }
    ),
}
"""One value of every exported contract."""


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(SCHEMAS[name], offline=True)


@pytest.mark.requirement("contracts.schemas_valid")
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_valid_2020_12_and_accepts_what_its_contract_writes(name: str):
    jsonschema_rs.meta.validate(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == DIALECT

    written = json.loads(WRITTEN[name].model_dump_json())

    assert [error.message for error in validator(name).iter_errors(written)] == []


@pytest.mark.requirement("contracts.schemas_valid", "contracts.wire_names")
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_contract_reads_what_it_writes(name: str):
    shape: Any = StreamEvent if name == "StreamEvent" else type(WRITTEN[name])

    assert TypeAdapter[Any](shape).validate_json(WRITTEN[name].model_dump_json()) == WRITTEN[name]


@pytest.mark.requirement("contracts.schemas_valid", "contracts.strict")
@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "StreamEvent"])
def test_a_schema_refuses_a_field_that_its_contract_does_not_have(name: str):
    written = json.loads(WRITTEN[name].model_dump_json())

    assert not validator(name).is_valid({**written, "surprise": 1})


@pytest.mark.requirement("contracts.schemas_documented")
def test_the_text_under_a_field_is_its_description_in_every_schema_that_has_it():
    envelope, event = SCHEMAS["ToolEnvelope"], SCHEMAS["RunEvent"]

    assert envelope["properties"]["cost_usd"]["description"] == "Null means unknown, never 0 for a paid call."
    assert event["$defs"]["ToolEnvelope"]["properties"]["cost_usd"] == envelope["properties"]["cost_usd"]
    assert event["$defs"]["Timings"]["properties"]["policy"]["description"].startswith("Guard, permission")


@pytest.mark.requirement("contracts.schemas_committed")
def test_the_committed_schemas_are_those_of_the_contracts():
    committed = {path.name: path.read_text(encoding="utf-8") for path in COMMITTED.iterdir()}
    committed.pop("cli.json")  # what commands print: tests/docs/test_command_line.py
    committed.pop("project.json")  # documents of projects: tests/unit/project/test_init.py
    current = schema_files()
    differing = sorted(name for name in committed.keys() | current if committed.get(name) != current.get(name))

    assert differing == [], (
        "these contracts differ from docs/schemas. If the change of the public API is meant, run "
        "`toolcrib schema --write docs/schemas` and commit the result"
    )


@pytest.mark.requirement("contracts.old_payloads")
@pytest.mark.parametrize("type_", [event.model_fields["type"].default for event in EVENTS])
def test_every_event_type_has_a_stored_payload_of_this_schema_version(type_: str):
    assert Path(__file__).parent / "payloads" / f"v{SCHEMA_VERSION}" / f"{type_}.json" in PAYLOADS


def missing(old: Any, new: Any, path: str = "") -> list[str]:
    """Places where `old` holds something that `new` does not hold."""
    if isinstance(old, dict) and isinstance(new, dict):
        then, now = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        return [found for key, value in then.items() for found in missing(value, now.get(key), f"{path}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(cast("list[Any]", old)) == len(cast("list[Any]", new)):
        pairs = enumerate(zip(cast("list[Any]", old), cast("list[Any]", new), strict=True))
        return [found for place, (before, after) in pairs for found in missing(before, after, f"{path}/{place}")]
    return [] if old == new else [f"{path}: {old!r} became {new!r}"]


@pytest.mark.requirement("contracts.old_payloads")
@pytest.mark.parametrize("path", PAYLOADS, ids=[f"{path.parent.name}-{path.stem}" for path in PAYLOADS])
def test_a_payload_that_was_ever_written_is_read_without_loss(path: Path):
    event = RunEvent.model_validate_json(path.read_bytes())

    assert missing(read(path), event.model_dump(mode="json")) == []
    assert RunEvent.model_validate_json(event.model_dump_json()) == event
    assert validator("RunEvent").is_valid(read(path))

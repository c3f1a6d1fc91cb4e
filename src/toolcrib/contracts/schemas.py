"""The contracts as JSON Schema 2020-12, for people and programs in other languages (`toolcrib schema`)."""

import ast
import inspect
import json
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import BaseModel, TypeAdapter

from toolcrib.contracts._base import Contract, JsonObject, JsonSchema
from toolcrib.contracts.adoption import ImportOutcome, ToolReview
from toolcrib.contracts.agent_definitions import AgentDefinition
from toolcrib.contracts.approvals import Approval, ApprovalPreview
from toolcrib.contracts.authoring import PromptDifference, PromptRevision, PromptTest, TextProposal
from toolcrib.contracts.envelope import ToolEnvelope
from toolcrib.contracts.errors import ToolError
from toolcrib.contracts.evaluations import Evaluation, EvaluationDataset
from toolcrib.contracts.events import RunEvent
from toolcrib.contracts.executions import AgentRequest, AgentResponse
from toolcrib.contracts.impact import ImpactReport
from toolcrib.contracts.imports import LossReport
from toolcrib.contracts.models import Limits, LLMConfig
from toolcrib.contracts.outputs import AgentOutputs, PinnedHandle
from toolcrib.contracts.principals import Principal
from toolcrib.contracts.providers import ProviderDefinition
from toolcrib.contracts.questions import Answer, OpenQuestion
from toolcrib.contracts.replays import Replay
from toolcrib.contracts.run_diffs import RunDiff
from toolcrib.contracts.runs import ApprovalDecision, ClientResult, Run, RunRequest, RunResult
from toolcrib.contracts.stream import StreamEvent
from toolcrib.contracts.tools import ToolDefinition, ToolRevision
from toolcrib.contracts.trace import Trace
from toolcrib.contracts.workflow_definitions import WorkflowDefinition
from toolcrib.contracts.workflow_drafts import WorkflowDraft
from toolcrib.contracts.workflow_graphs import WorkflowGraph
from toolcrib.contracts.workflow_instances import WorkflowInstance

DIALECT = "https://json-schema.org/draft/2020-12/schema"


_EXPORTED: tuple[type[BaseModel], ...] = (
    AgentDefinition,
    AgentOutputs,
    AgentRequest,
    AgentResponse,
    Answer,
    Approval,
    ApprovalDecision,
    ApprovalPreview,
    ClientResult,
    Evaluation,
    EvaluationDataset,
    ImpactReport,
    ImportOutcome,
    LLMConfig,
    Limits,
    LossReport,
    OpenQuestion,
    PinnedHandle,
    Principal,
    PromptDifference,
    PromptRevision,
    PromptTest,
    ProviderDefinition,
    Replay,
    Run,
    RunDiff,
    RunEvent,
    RunRequest,
    RunResult,
    TextProposal,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolReview,
    ToolRevision,
    Trace,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowGraph,
    WorkflowInstance,
)


def contract_schemas() -> dict[str, JsonSchema]:
    """The JSON schema of every public contract, by name, sorted; fields carry their documentation."""
    schemas = {model.__name__: _schema(model.__name__, TypeAdapter(model)) for model in _EXPORTED}
    schemas["StreamEvent"] = _schema("StreamEvent", TypeAdapter(StreamEvent))
    return dict(sorted(schemas.items()))


def schema_files() -> dict[str, str]:
    """The same as files, by name: `Run.json`, indented, ending with a line feed."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in contract_schemas().items()
    }


def _schema(title: str, shape: TypeAdapter[Any]) -> JsonSchema:
    schema: JsonSchema = {"title": title, **shape.json_schema(mode="serialization")}
    documented = {found.__name__: found for found in _subclasses(Contract)}
    for name, part in [(title, schema), *schema.get("$defs", {}).items()]:
        if name in documented:
            _describe(part, documented[name])
    return {"$schema": DIALECT, **schema}


def _describe(schema: JsonObject, model: type[BaseModel]) -> None:
    docs = _field_docs(model)
    for field in docs.keys() & schema.get("properties", {}).keys():
        schema["properties"][field].setdefault("description", docs[field])


def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """The string that stands under each field in the source of the class, or of the one that it comes from."""
    return {
        field: text
        for part in reversed(model.__mro__)
        if issubclass(part, Contract) and part is not Contract
        for field, text in _own_docs(part).items()
    }


@cache
def _own_docs(model: type[BaseModel]) -> dict[str, str]:
    tree = ast.parse(dedent(inspect.getsource(model))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    docs: dict[str, str] = {}
    for field, text in pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            docs[field.target.id] = inspect.cleandoc(text.value.value)
    return docs


def _subclasses(model: type[BaseModel]) -> list[type[BaseModel]]:
    return [found for child in model.__subclasses__() for found in (child, *_subclasses(child))]

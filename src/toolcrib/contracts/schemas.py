"""The contracts as JSON Schema 2020-12, for people and for programs in other languages (`toolcrib schema`)."""

import ast
import inspect
import json
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import TypeAdapter

from toolcrib.contracts.base.base import Contract, JsonObject, JsonSchema, Record
from toolcrib.contracts.base.envelope import AgentOutputs, PinnedHandle, ToolEnvelope
from toolcrib.contracts.base.errors import ToolError
from toolcrib.contracts.base.principals import Principal
from toolcrib.contracts.evaluations import Evaluation, EvaluationDataset
from toolcrib.contracts.providers.providers import ProviderDefinition
from toolcrib.contracts.runs.approvals import Approval, ApprovalPreview
from toolcrib.contracts.runs.comparisons import Replay, RunDiff
from toolcrib.contracts.runs.events import RunEvent
from toolcrib.contracts.runs.executions import AgentRequest, AgentResponse, Answer, OpenQuestion
from toolcrib.contracts.runs.runs import ApprovalDecision, ClientResult, Run, RunRequest, RunResult
from toolcrib.contracts.runs.stream import StreamEvent
from toolcrib.contracts.runs.trace import Trace
from toolcrib.contracts.runs.workflow_instances import WorkflowInstance
from toolcrib.contracts.specs.models_and_limits import Limits, LLMConfig
from toolcrib.contracts.tools.agent_definitions import AgentDefinition
from toolcrib.contracts.tools.imports import ImportOutcome, LossReport, ToolReview
from toolcrib.contracts.tools.prompt_proposals import PromptDifference, PromptRevision, PromptTest, TextProposal
from toolcrib.contracts.tools.tools import ToolDefinition, ToolRevision
from toolcrib.contracts.workflows.graphs import ImpactReport, WorkflowDraft, WorkflowGraph
from toolcrib.contracts.workflows.workflow_definitions import WorkflowDefinition

DIALECT = "https://json-schema.org/draft/2020-12/schema"


_EXPORTED: tuple[type[Contract] | type[Record], ...] = (
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
    describe_fields(title, schema)
    return {"$schema": DIALECT, **schema}


def describe_fields(title: str, schema: JsonSchema) -> None:
    """Give the fields of a contract's schema, and of its definitions, the documentation of the source.

    Args:
        title: Name of the contract's class.
        schema: Is changed.
    """
    documented = {found.__name__: found for found in (*_subclasses(Contract), *_subclasses(Record))}
    for name, part in [(title, schema), *schema.get("$defs", {}).items()]:
        if name in documented:
            _describe(part, documented[name])


def _describe(schema: JsonObject, model: type[Any]) -> None:
    docs = _field_docs(model)
    for field in docs.keys() & schema.get("properties", {}).keys():
        schema["properties"][field].setdefault("description", docs[field])


def _field_docs(model: type[Any]) -> dict[str, str]:
    """The docstring under each field in the source of the class, or of the base class that defines it."""
    return {
        field: text
        for part in reversed(model.__mro__)
        if issubclass(part, Contract | Record) and part not in {Contract, Record}
        for field, text in _own_docs(part).items()
    }


@cache
def _own_docs(model: type[Any]) -> dict[str, str]:
    try:
        source = inspect.getsource(model)
    except OSError:  # a class that was made at run time
        return {}
    tree = ast.parse(dedent(source)).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    docs: dict[str, str] = {}
    for field, text in pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            docs[field.target.id] = inspect.cleandoc(text.value.value)
    return docs


def _subclasses(model: type[Any]) -> list[type[Any]]:
    return [found for child in model.__subclasses__() for found in (child, *_subclasses(child))]

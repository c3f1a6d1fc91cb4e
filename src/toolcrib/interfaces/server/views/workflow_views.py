"""Requests and responses of workflows and their instances that are not plain contracts."""

import json
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from fastapi import Response
from pydantic import Field

from toolcrib.contracts import Contract, ImpactReport, InvalidDefinition, JsonObject, ToolRevision
from toolcrib.contracts.workflows import (
    PastCall,
    Publication,
    StepName,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowGraph,
    WorkflowProblem,
)
from toolcrib.interfaces.server.views.base import ListView, PageView, Stored, View

DocumentFormat: TypeAlias = Literal["json", "yaml"]
DOCUMENT: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"application/json": {}, "application/yaml": {}}}}
"""Answers of routes that give a definition as its author would write it."""


class WorkflowBody(WorkflowDefinition):
    """A workflow, as an author sends it."""


Document: TypeAlias = Annotated[WorkflowBody | JsonObject, Field(union_mode="left_to_right")]
"""A definition. An invalid one is read as well, so that all its errors are reported."""


def refuse_other_name(path: str, definition: WorkflowDefinition | JsonObject) -> None:
    """Refuse a definition that is sent to the path of another; a missing name is reported with the other errors.

    Raises:
        InvalidDefinition: It is one.
    """
    named = name_in(definition)
    if named not in {"", path}:
        msg = f"the definition is named {named!r} and the path {path!r}; send it to its own name"
        raise InvalidDefinition(msg)


def name_in(definition: WorkflowDefinition | JsonObject) -> str:
    """The name that a definition gives itself; empty without one."""
    return definition.name if isinstance(definition, WorkflowDefinition) else str(definition.get("name", ""))


def document_of(workflow: WorkflowDefinition, form: DocumentFormat) -> Response:
    """A definition as its author would write it: what is as by default is left out."""
    content = workflow.document()
    if form == "json":
        return Response(json.dumps(content, indent=2, ensure_ascii=False), media_type="application/json")
    import yaml  # noqa: PLC0415 - most servers never need it

    return Response(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), media_type="application/yaml")


class WorkflowView(WorkflowDefinition, Stored):
    """A workflow, as it is published."""

    @classmethod
    def of_revision(cls, tool: ToolRevision) -> Self:
        """The view of a revision."""
        return cls.project(WorkflowDefinition.of(tool.definition), tool, life_cycle=tool.status)


class WorkflowPage(PageView[WorkflowView]):
    """Workflows by name."""


class WorkflowRevisions(ListView[WorkflowView]):
    """All revisions of a workflow."""


class WorkflowValidity(Contract):
    """Whether a definition could be published, and its graph."""

    valid: bool
    problems: tuple[WorkflowProblem, ...]
    """Errors and warnings, all of them."""
    graph: WorkflowGraph

    @classmethod
    def of(cls, graph: WorkflowGraph) -> Self:
        """What a check has found."""
        valid = not any(problem.is_error for problem in graph.problems)
        return cls(valid=valid, problems=graph.problems, graph=graph)


class DraftBody(Contract):
    """A draft, as an author sends it."""

    definition: Document
    note: str = Field(default="", max_length=10_000)
    """A note of its author for the person who publishes it."""


class DraftPage(PageView[WorkflowDraft]):
    """Drafts by name."""


class PublishBody(Contract):
    """What is published."""

    definition: Document | None = None
    """The draft of this name if null."""
    draft_revision: int | None = None
    """Number of the reviewed revision of the draft: another one is not published. Null for the newest."""


class PublicationView(View):
    """What publishing did."""

    workflow: WorkflowView
    impact: ImpactReport | None
    """Whom the new revision concerns."""
    problems: tuple[WorkflowProblem, ...]
    """Warnings."""

    @classmethod
    def of(cls, publication: Publication) -> Self:
        """The view of a publication."""
        return cls.project(publication, workflow=WorkflowView.of_revision(publication.tool))


class RevertBody(Contract):
    """The revision that becomes the newest one again."""

    revision: int = Field(ge=1)


class MaterializeBody(PastCall):
    """A call that an agent has made, and the step that it becomes."""

    step: StepName
    """Name of the new step."""


class Undone(Contract):
    """The draft as it was before its last change."""

    draft: WorkflowDraft | None
    """Null if there was none before."""


class StartBody(Contract):
    """What a workflow is run with."""

    input: JsonObject = Field(default_factory=dict)
    """Arguments, as the workflow's `input_schema` says."""
    wait: bool = True
    """False: respond at once; the run continues in the background."""


class RerunBody(Contract):
    """The step from which a run is repeated."""

    step: StepName
    """The first step to run again."""
    wait: bool = True
    """False: respond at once; the run continues in the background."""


class ResumeBody(Contract):
    """How a run is continued."""

    repeat_unknown: bool = False
    """Also repeat calls with an unknown outcome."""
    wait: bool = True
    """False: respond at once; the run continues in the background."""


class SignalBody(Contract):
    """What is said to a run that waits for it."""

    name: StepName
    payload: JsonObject = Field(default_factory=dict)
    """The output of the step that waits."""


class ToldSignal(Contract):
    """A signal was sent to a run, which then resumes."""

    run_id: str
    name: str

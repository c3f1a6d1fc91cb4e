"""Saves the documents of a project into a crib, through the same services as single commands.

Documents are saved again until nothing changes any more, because what is derived from other definitions (side effects,
locks, prompts) depends on the order otherwise. If one cannot be saved, the others are tried all the same, and all
problems are told together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from toolcrib.contracts import (
    AgentDefinition,
    Contract,
    InvalidInput,
    McpServerDefinition,
    PromptFragment,
    ProviderDefinition,
    ServiceAccount,
    ToolcribError,
    ToolDefinition,
    ToolRevision,
    TriggerDefinition,
)
from toolcrib.contracts.projects import ProjectBlob, ProjectFunction, ProjectImport
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition
from toolcrib.core.expressions.suggestions import suggestion
from toolcrib.crib.crib import Crib
from toolcrib.crib.project.documents import InvalidProject, Project, ProjectDocument, ProjectFault
from toolcrib.crib.project.importing import AddressImports, losses_of
from toolcrib.crib.project.saved import Pin, SavedProject, StoredName
from toolcrib.infrastructure.store import DefinitionKind
from toolcrib.kinds.python.functions import FunctionTool

_MOST_ROUNDS: Final = 20
_NOT_SAVED: Final = frozenset({"project", "secret", "key", "budget"})
"""Kinds of documents that are only read."""


@dataclass(frozen=True)
class Functions:
    """The Python functions of an application, which the person who applies a project has named."""

    application: str
    """`module:name`."""
    definitions: Mapping[str, ToolDefinition]
    """Of the functions, by name."""


async def save_project(
    crib: Crib, project: Project, functions: Functions | None = None, pins: Mapping[str, Pin] | None = None
) -> SavedProject:
    """Save all documents of a project.

    Args:
        crib: Where to; usually one on a shadow of the store.
        project: The documents.
        functions: Those of the application that the project names.
        pins: Of imports from addresses that are not asked again as long as their documents are the same.

    Raises:
        InvalidProject: Documents cannot be saved; it tells all problems.
    """
    saver = _Saver(crib, project, functions, pins or {})
    realm = crib.principal.realm
    before: tuple[int, int] | None = None
    faults: dict[ProjectDocument, list[ProjectFault]] = {}
    for _ in range(_MOST_ROUNDS):
        faults = {}
        saver.saved = SavedProject()
        for document in project.documents:
            found = await saver.save(document)
            if found:
                faults[document] = found
        now = (await crib.store.definitions.changes(realm), len(faults))
        if now == before:
            break
        before = now
    if faults:
        raise InvalidProject(_causes(faults))
    return saver.saved


def _causes(faults: Mapping[ProjectDocument, Sequence[ProjectFault]]) -> list[ProjectFault]:
    """The problems without those that follow from others: a document names one that has a problem itself."""
    wrong = {document.name for document in faults}
    causes = [
        found
        for document, each in faults.items()
        for found in each
        if not any(repr(name) in found.message.partition(": ")[2] for name in wrong - {document.name})
    ]
    return causes or [found for each in faults.values() for found in each]


class _Saver:
    def __init__(self, crib: Crib, project: Project, functions: Functions | None, pins: Mapping[str, Pin]) -> None:
        self._crib = crib
        self._project = project
        self._functions = functions
        self._importing = AddressImports(crib, pins)
        self.saved = SavedProject()

    async def save(self, document: ProjectDocument) -> list[ProjectFault]:
        """Save one document; what is wrong with it."""
        if document.kind in _NOT_SAVED:
            return []
        try:
            await self._save(document)
            if document.life is not None:
                await self._set_life(document)
        except InvalidInput as problem:
            told = [(str(each["path"]), str(each["problem"])) for each in problem.problems]
            return [document.fault(path, text) for path, text in told or [("", str(problem))]]
        except ToolcribError as problem:
            return [document.fault("", str(problem))]
        return []

    async def _save(self, document: ProjectDocument) -> None:
        crib, body = self._crib, document.body
        match body:
            case ProjectBlob():
                await self._blob(body)
            case ProjectImport(openapi=str(path)):
                await self._import(document, body, path)
            case ProjectImport():
                await self._importing.save(document, body, self.saved)
            case ProjectFunction():
                await self._function(document, body)
            case AgentDefinition():
                self._note(document, await crib.agents.save(body))
            case ToolDefinition():
                self._note(document, await crib.save(body))
            case WorkflowDefinition():
                done = await crib.workflows.publish(body)
                self._note(document, done.tool)
                for problem in done.problems:
                    self.saved.warnings[str(document.fault(problem.path, problem.message))] = None
            case _:
                self.saved.made_by[StoredName(await self._save_named(body), document.name)] = document

    async def _blob(self, body: ProjectBlob) -> None:
        digest = sha256(body.base64).hexdigest()
        if digest != body.name:
            raise InvalidInput(f"its bytes have the digest {digest}; export it again, or correct name or base64")
        who = self._crib.principal
        await self._crib.store.blobs.put(body.base64, realm=who.realm, made_by=who.id, content_type=body.media_type)
        self.saved.blobs[digest] = body

    async def _save_named(self, body: Contract) -> DefinitionKind:
        """Save what has a name and no version; the kind that it is stored as."""
        crib = self._crib
        match body:
            case ProviderDefinition():
                await crib.save_provider(body)
                return "provider"
            case PromptFragment():
                await crib.fragments.save(body)
                return "fragment"
            case ServiceAccount():
                await crib.accounts.save(body)
                return "account"
            case ConditionBinding():
                await crib.conditions.save(body)
                return "condition"
            case StepRegistration():
                await crib.steps.save(body)
                return "workflow_step"
            case McpServerDefinition():
                await crib.mcp_servers.save(body)
                return "mcp_server"
            case TriggerDefinition():
                await crib.triggers.save(body)
                return "trigger"
            case _:
                raise TypeError(f"{type(body).__name__} is not stored")

    def _note(self, document: ProjectDocument, saved: ToolRevision) -> None:
        self.saved.made_by[StoredName("tool", document.name, saved.definition.version)] = document
        for warning in saved.warnings:
            self.saved.warnings[str(document.fault("", warning))] = None

    async def _import(self, document: ProjectDocument, wanted: ProjectImport, path: str) -> None:
        root = self._project.folder.resolve()
        file = (root / document.file).parent.joinpath(path).resolve()
        if not file.is_relative_to(root):
            raise InvalidInput(f"{path} is outside of the project's folder {root}; copy it there")
        try:
            text = file.read_bytes()
        except OSError as problem:
            near = [str(each.relative_to(root)) for each in sorted(file.parent.glob("*")) if each.is_file()]
            what = f"{path} cannot be read: {problem.strerror}; {suggestion(path, near)}"
            raise InvalidInput(what.rstrip("; ")) from problem
        made = await self._crib.imports.openapi(
            text, name=wanted.name, base_url=wanted.base_url, auth=wanted.auth, accept=True
        )
        self.saved.made_by[StoredName("provider", wanted.name)] = document
        for tool in made.tools:
            self.saved.made_by[StoredName("tool", tool.name, tool.version)] = document
        self.saved.warnings |= dict.fromkeys(losses_of(made, document, path))

    async def _function(self, document: ProjectDocument, wanted: ProjectFunction) -> None:
        given = self._functions
        if given is not None and given.application == wanted.application:
            definition = given.definitions.get(wanted.name)
            if definition is None or definition.version != wanted.version:
                meant = suggestion(wanted.name, given.definitions)
                known = ", ".join(f"{name}@{each.version}" for name, each in given.definitions.items()) or "none"
                raise InvalidInput(
                    f"{given.application} has no function {wanted.name}@{wanted.version}; {meant}it has: {known}"
                )
            self._note(document, await self._crib.save(definition))
            return
        found = self._crib.registry.find(self._crib.principal.realm, wanted.name, wanted.version)
        if found is None or found.definition.implementation.kind != "python":
            raise InvalidInput(
                f"the store has no Python function {wanted.name}@{wanted.version}; apply with --app "
                f"{wanted.application}, or start toolcrib worker {wanted.application} first"
            )
        self.saved.made_by[StoredName("tool", wanted.name, wanted.version)] = document

    async def _set_life(self, document: ProjectDocument) -> None:
        life, lifecycle = document.life, self._crib.lifecycle
        ref = f"{document.name}@{document.version}"
        current = self._crib.registry.find(self._crib.principal.realm, document.name, document.version)
        if life is None or current is None or _same_life(document, current):
            return
        if life.status == "deprecated":
            await lifecycle.deprecate(ref, message=life.message, sunset=life.sunset, replacement=life.replacement)
        elif life.status == "blocked":
            await lifecycle.block(ref, message=life.message, replacement=life.replacement)
        else:
            await lifecycle.activate(ref)


def _same_life(document: ProjectDocument, current: ToolRevision) -> bool:
    life = document.life
    return life is not None and (life.status, life.message, life.sunset, life.replacement) == (
        current.status,
        current.status_message,
        current.sunset,
        current.replacement,
    )


def functions_of(application: str, crib: Crib) -> Functions:
    """The Python functions that were added to an application's crib, which is not opened.

    Args:
        application: Its name on the command line, `module:name`.
        crib: The crib.
    """
    added = (addition for addition, _ in crib.additions)
    functions = [each.definition for each in added if isinstance(each, FunctionTool)]
    return Functions(application, {each.name: each for each in functions})

"""Reads a folder of YAML and JSON files as the documents of a project, and tells all that is wrong with their form.

Hidden folders and `node_modules` are left out, and so are the OpenAPI documents that an `import` names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, cast, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from toolcrib.contracts import (
    AgentDefinition,
    Contract,
    Implementation,
    InvalidDefinition,
    JsonObject,
    McpServerDefinition,
    NotFound,
    PromptFragment,
    ProviderDefinition,
    ServiceAccount,
    ToolDefinition,
    TriggerDefinition,
    VersionLife,
)
from toolcrib.contracts.projects import (
    ProjectBlob,
    ProjectBudget,
    ProjectFunction,
    ProjectHeader,
    ProjectImport,
    ProjectKey,
    ProjectKind,
    ProjectSecret,
)
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition
from toolcrib.core.expressions.suggestions import suggestion
from toolcrib.kinds.table import SHAPES
from toolcrib.workflows.checks.documents import fault, place_of, read_definition

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
KINDS: Final[tuple[ProjectKind, ...]] = get_args(ProjectKind)
SHAPE_OF: Final[Mapping[ProjectKind, type[Contract]]] = {
    "project": ProjectHeader,
    "secret": ProjectSecret,
    "key": ProjectKey,
    "budget": ProjectBudget,
    "blob": ProjectBlob,
    "provider": ProviderDefinition,
    "fragment": PromptFragment,
    "account": ServiceAccount,
    "condition": ConditionBinding,
    "function": ProjectFunction,
    "import": ProjectImport,
    "tool": ToolDefinition,
    "handler": StepRegistration,
    "agent": AgentDefinition,
    "workflow": WorkflowDefinition,
    "mcp_server": McpServerDefinition,
    "trigger": TriggerDefinition,
}
"""The contract whose fields a document of each kind has, beside `kind`."""
TOOL_KINDS: Final[frozenset[ProjectKind]] = frozenset({"tool", "agent", "workflow", "function"})
"""What is stored as a tool, so that these share their names."""

_LIFE: Final = "life_cycle"
_UNKNOWN: Final = "extra_forbidden"
_SKIPPED: Final = frozenset({"node_modules"})


@dataclass(frozen=True)
class ProjectFault:
    """One thing that is wrong, and where."""

    file: str
    """Relative to the folder."""
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class Lines(Protocol):
    """Finds the lines of a document."""

    def line_of(self, pointer: str) -> int:
        """The line, from 1, of what a JSON pointer leads to."""
        ...


@dataclass(frozen=True, eq=False)
class ProjectDocument:
    """One document of a project, in the shape of its kind."""

    kind: ProjectKind
    body: Contract
    content: JsonObject
    """As it was written, without `kind`."""
    file: str
    lines: Lines = field(repr=False)
    life: VersionLife | None = None
    """The life-cycle state that its version gets; null to leave it as it is."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.content["name"])

    @property
    def version(self) -> str | None:
        """Its version, if its kind has one."""
        return getattr(self.body, "version", None)

    @property
    def source(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.lines.line_of('')}"

    def fault(self, pointer: str, message: str) -> ProjectFault:
        """Something that is wrong at a place of it."""
        return ProjectFault(self.file, self.lines.line_of(pointer), f"{self.kind} {self.name!r}: {message}")


class InvalidProject(InvalidDefinition):
    """A project cannot be applied; `faults` has all that is wrong.

    Args:
        faults: In the order of files and lines.
    """

    def __init__(self, faults: Iterable[ProjectFault]) -> None:
        self.faults = tuple(sorted(set(faults), key=lambda found: (found.file, found.line, found.message)))
        problems = [{"path": f"{found.file}:{found.line}", "problem": found.message} for found in self.faults]
        super().__init__("; ".join(map(str, self.faults)), problems)


@dataclass(frozen=True)
class Project:
    """A folder of documents.

    Example:
        from pathlib import Path
        from toolcrib.crib.project import Project, prepare

        project = Project.read(Path("definitions"))
        prepared = await prepare(crib, project)
        print([(change.action, change.name) for change in prepared.plan.to_do])
    """

    name: str
    folder: Path
    documents: tuple[ProjectDocument, ...]
    """In the order in which they are saved."""

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """Read all documents of a folder.

        Args:
            folder: With YAML and JSON files, in any depth.

        Raises:
            NotFound: There is no such folder, or no document in it.
            InvalidProject: A document cannot be read, has not the shape of its kind, or two have the same name.
        """
        if not folder.is_dir():
            raise NotFound(f"there is no folder {str(folder)!r}; make a project with toolcrib init")
        found, faults = _read_all(folder)
        faults += _repeated(found)
        if faults:
            raise InvalidProject(faults)
        if not found:
            msg = f"there are no definitions in {folder}: files with {', '.join(sorted(SUFFIXES))}"
            raise NotFound(f"{msg} that have documents with a kind")
        headers = [each for each in found if each.kind == "project"]
        name = headers[0].name if headers else folder.resolve().name
        ordered = sorted(found, key=lambda each: (KINDS.index(each.kind), each.name, _numbers(each.version)))
        return cls(name, folder, tuple(ordered))

    def of_kind(self, kind: ProjectKind) -> tuple[ProjectDocument, ...]:
        """Its documents of a kind."""
        return tuple(each for each in self.documents if each.kind == kind)


def _numbers(version: str | None) -> tuple[int, ...]:
    parts = (version or "").partition("-")[0].split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def _read_all(folder: Path) -> tuple[list[ProjectDocument], list[ProjectFault]]:
    documents: list[ProjectDocument] = []
    unread: dict[Path, list[ProjectFault]] = {}
    faults: list[ProjectFault] = []
    for file in _files(folder):
        for each in _read(file, str(file.relative_to(folder))):
            if isinstance(each, ProjectDocument):
                documents.append(each)
            elif each.message.startswith((_NO_KIND, _TOO_LARGE)):
                unread.setdefault(file.resolve(), []).append(each)
            else:
                faults.append(each)
    imported = {(folder / each.file).parent.joinpath(_openapi(each)).resolve() for each in documents if _openapi(each)}
    faults += [each for file, found in unread.items() if file not in imported for each in found]
    return documents, faults


def _openapi(document: ProjectDocument) -> str:
    return document.body.openapi or "" if isinstance(document.body, ProjectImport) else ""


def _files(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in SUFFIXES
        and (file.is_file() or file.is_symlink())
        and not file.is_dir()
        and not any(part.startswith(".") or part in _SKIPPED for part in file.relative_to(folder).parts)
    )


def _read(file: Path, name: str) -> Iterator[ProjectDocument | ProjectFault]:
    """The documents of a file, and what is wrong with its text."""
    import yaml  # noqa: PLC0415 - only commands over projects need it

    from toolcrib.crib.project.yaml_text import documents_in  # noqa: PLC0415 - as above

    try:
        size = file.stat().st_size
        if size > _MOST_BYTES:
            yield ProjectFault(name, 1, f"{_TOO_LARGE} {size:,} bytes, and at most {_MOST_BYTES:,} are read; divide it")
            return
        found = list(documents_in(file.read_text(encoding="utf-8")))
    except OSError as problem:
        yield ProjectFault(name, 1, f"it cannot be read: {problem.strerror}; mend it, or remove it from the folder")
        return
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        yield ProjectFault(name, line, f"byte 0x{problem.object[problem.start]:02x} is not UTF-8; save it as UTF-8")
        return
    except yaml.YAMLError as problem:
        mark: Any = getattr(problem, "problem_mark", None)
        what = str(getattr(problem, "problem", None) or problem)
        advice = "; indent with spaces instead of tabs" if "'\\t'" in what else ""
        yield ProjectFault(name, 1 if mark is None else mark.line + 1, f"it is not YAML: {what}{advice}")
        return
    for each in found:
        for line, twice in each.repeated_names():
            yield ProjectFault(name, line, f"{twice!r} stands twice in one mapping; keep one of them")
        yield from _document(each.content, each, name)


def _document(content: object, lines: Lines, file: str) -> Iterator[ProjectDocument | ProjectFault]:
    if not isinstance(content, dict):
        yield ProjectFault(file, lines.line_of(""), "a document must be a mapping with kind and name")
        return
    body = dict(cast("JsonObject", content))
    kind = body.pop("kind", None)
    if kind is None:
        yield ProjectFault(file, lines.line_of(""), f"{_NO_KIND}; {_guess(body)}")
        return
    if not isinstance(kind, str) or kind not in SHAPE_OF:
        meant = suggestion(str(kind), KINDS)
        message = f"there is no kind {kind!r}; {meant}the kinds are {', '.join(KINDS)}"
        yield ProjectFault(file, lines.line_of("/kind"), message)
        return
    yield from _shaped(kind, body, lines, file)


_NO_KIND: Final = "the document has no kind"
_TOO_LARGE: Final = "the file has"
_MOST_BYTES: Final = 2_000_000
"""Of a file of definitions; documents that an `import` names may be larger."""


def _guess(body: JsonObject) -> str:
    """What a document without a kind probably is."""
    if "openapi" in body or "swagger" in body:
        return "to import an OpenAPI document, name it in a document with kind: import and openapi: FILE"
    for kind, name in (("tool", "implementation"), ("workflow", "steps"), ("agent", "llm"), ("provider", "base_url")):
        if name in body:
            return f"add kind: {kind}"
    return f"add one of {', '.join(KINDS)}"


def _shaped(kind: ProjectKind, body: JsonObject, lines: Lines, file: str) -> Iterator[ProjectDocument | ProjectFault]:
    """A document in the shape of its kind, or what is wrong with its fields."""
    what = f"{kind} {body['name']!r}" if "name" in body else f"a {kind}"
    life: VersionLife | None = None
    faults = list[tuple[str, str]]()
    content = {name: value for name, value in body.items() if name != _LIFE or kind not in TOOL_KINDS}
    if len(content) < len(body):
        given: Any = body[_LIFE]
        try:
            life = VersionLife.model_validate({"version": body.get("version", "1.0.0"), **given})
        except (TypeError, ValidationError):
            faults.append((f"/{_LIFE}", "life_cycle needs a status: active, deprecated or blocked"))
    shape: Contract | None = None
    if kind == "workflow":
        read = read_definition(content)
        shape = read.definition
        faults += [(found.path, " ".join(filter(None, (found.message, found.suggestion)))) for found in read.problems]
    else:
        try:
            shape = SHAPE_OF[kind].model_validate(content)
        except ValidationError as problem:
            errors = problem.errors(include_url=False, include_input=False)
            faults += _worded(SHAPE_OF[kind], errors, content)
    for pointer, message in faults:
        yield ProjectFault(file, lines.line_of(pointer), f"{what}: {message}")
    if shape is not None and not faults:
        yield ProjectDocument(kind, shape, content, file, lines, life)


def _worded(shape: type[Contract], errors: Sequence[ErrorDetails], content: JsonObject) -> Iterator[tuple[str, str]]:
    """Place and text of each error; a value is not repeated where it could be a secret."""
    at: dict[str, list[ErrorDetails]] = {}
    for error in errors:
        at.setdefault(place_of(error, content)[0], []).append(error)
    for pointer, found in at.items():
        dotted = pointer[1:].replace("/", ".") or "it"
        first = found[0]
        if first["type"] == _UNKNOWN:
            meant = suggestion(str(first["loc"][-1]), _fields_at(shape, first["loc"][:-1]))
            yield pointer, f"there is no field {dotted!r}; {meant or 'take it out'}".rstrip()
        elif first["type"] == "missing":
            yield pointer, f"{dotted} is missing; add it"
        else:
            told = fault(found, dotted, place_of(first, content)[1])
            yield pointer, " ".join(filter(None, (told.message, told.suggestion)))


def _fields_at(shape: type[Contract], location: Sequence[int | str]) -> Iterable[str]:
    """The names of fields at a place, as far as its contract is known."""
    if not location:
        return shape.model_fields
    if location[0] == "implementation":
        for each in SHAPES:
            found: type[Implementation] = each
            if len(location) == _IN_SHAPE and found.model_fields["kind"].default == location[1]:
                return found.model_fields
        return ()
    annotation: Any = shape.model_fields[str(location[0])].annotation if location[0] in shape.model_fields else None
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Contract):
            return _fields_at(candidate, [part for part in location[1:] if isinstance(part, str)])
    return ()


_IN_SHAPE: Final = 2
"""Parts of the location of an implementation: the field, and the tag of its shape."""


def _repeated(documents: Sequence[ProjectDocument]) -> list[ProjectFault]:
    """Documents that mean the same thing in the store."""
    seen: dict[tuple[str, str, str | None], ProjectDocument] = {}
    groups: dict[str, ProjectDocument] = {}
    faults: list[ProjectFault] = []
    for each in documents:
        is_tool = each.kind in TOOL_KINDS
        key = ("tool" if is_tool else each.kind, "" if each.kind == "project" else each.name, each.version)
        first = seen.setdefault(key, each)
        if first is not each:
            what = f" version {each.version}" if each.version else ""
            faults.append(each.fault("/name", f"{first.source} has this name{what} already; rename or remove one"))
        elif is_tool and (groups.setdefault(each.name, each).kind != each.kind):
            other = groups[each.name]
            message = f"{other.source} is a {other.kind} of this name; tools, agents and workflows share their names"
            faults.append(each.fault("/name", message))
    return faults

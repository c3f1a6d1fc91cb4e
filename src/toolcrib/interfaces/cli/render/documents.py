"""The JSON documents of commands whose result is no contract of the library, as models.

Loaded only when one is needed, so that other commands start as fast without it. `outputs.py` names the document of each
command.
"""

from typing import Any, Literal

from pydantic import Field

from toolcrib.contracts import (
    AgentResponse,
    Attachment,
    Contract,
    Conversation,
    ConversationTurn,
    ImportOutcome,
    Json,
    JsonObject,
    LossReport,
    ReferenceReading,
    Run,
    Timestamp,
    ToolError,
    Trace,
)
from toolcrib.contracts.runs.comparisons import RunDiff
from toolcrib.contracts.workflows import WorkflowDraft
from toolcrib.core.runs.journal.bundles import Manifest


class CommandError(Contract):
    """Why a command was refused or failed: the value of `error` in the object on stderr."""

    code: str
    """`usage` for arguments that the command does not take; else the code of the library's error."""
    message: str
    next_step: str
    """What to do."""
    exit_status: int
    """2 for invalid input, else 1."""
    problems: tuple[JsonObject, ...] = ()
    """`path` and `problem` of each place that is wrong; with `file` and `line` for a definition in a file."""


class McpClientEntry(Contract):
    """An entry in the configuration of an MCP client, and what was done to it."""

    client: str
    path: str
    """The configuration."""
    name: str
    action: Literal["add", "change", "remove", "unchanged"]
    before: JsonObject | None = None
    """The entry as it was, without the values of headers and variables that were written out in it."""
    after: JsonObject | None = None
    backup: str | None = None
    """The copy of the file as it was; null if there was none."""


class Removed(Contract):
    """Something that was removed."""

    kind: str
    """`agent`, `tool`, `key`, …"""
    name: str
    """Its name or id."""


class CompletionScript(Contract):
    """The completion script of a shell."""

    shell: Literal["bash", "zsh", "fish"]
    script: str | None = None
    """Null if it was installed."""
    installed: str | None = None
    """The file that it was installed in."""


class TestedSandbox(Contract):
    """A way to run code, as an escape test found it."""

    backend: str
    dialect: str
    isolation: str
    problem: str | None
    """Why it is not used; null if it is."""
    seconds: float
    """How long the test took, from a cold start."""


class NewProject(Contract):
    """The files of a new project."""

    written: tuple[str, ...]
    """Relative to its folder."""
    next: tuple[str, ...]
    """Commands that work at once."""


class WrittenFiles(Contract):
    """What was written into a folder."""

    written: tuple[str, ...]
    removed: tuple[str, ...] = ()


class Setting(Contract):
    """One setting."""

    value: Json
    origin: str
    """Where the value comes from."""
    variable: str
    """The environment variable that sets it."""


class SettingsReport(Contract):
    """All settings."""

    settings: dict[str, Setting]
    secrets: dict[str, bool]
    """Whether each is set, by variable; never its value."""
    file: str | None
    """The settings file that was read."""


class Migration(Contract):
    """A migration of a store's schema."""

    revision: str
    purpose: str


class SchemaReport(Contract):
    """The schema of a store."""

    store: str
    revision: str | None
    """Null if it has no tables of Toolcrib yet."""
    newest: str
    """The newest revision that this release knows."""
    pending: tuple[Migration, ...]
    """The migrations between them, in order."""


class ProcessEvent(Contract):
    """That a server or worker is ready."""

    event: Literal["ready"]
    url: str | None = None
    """Where it listens, if it does."""


class AttachmentContent(Contract):
    """An attachment of a run."""

    attachment: Attachment
    file: str | None = None
    """The file that it was written to."""
    base64: str | None = None
    """Its bytes, if it was not written to a file."""


class ConversationHistory(Contract):
    """A conversation with its turns."""

    conversation: Conversation
    turns: tuple[ConversationTurn, ...]


class UndoneChange(Contract):
    """A change of a draft that was undone."""

    name: str
    draft: WorkflowDraft | None
    """The draft as it is now; null if there was none before."""


class SentSignal(Contract):
    """A signal that an instance was sent."""

    run_id: str
    name: str


class KeyEntry(Contract):
    """An API key, without its secret part."""

    key_id: str
    last_four: str
    principal: str
    scopes: tuple[str, ...]
    created_at: Timestamp
    expires_at: Timestamp | None


class NewKey(Contract):
    """A new API key: the only document that has it."""

    key: str


class MasterKey(Contract):
    """A new entry for TOOLCRIB_MASTER_KEYS, which is stored nowhere."""

    entry: str


class Rotation(Contract):
    """What sealing again has done."""

    sealed: int
    """Secrets and connections."""


class InstallableModel(Contract):
    """A model that can be installed on this machine."""

    name: str
    title: str
    licence: str
    size_bytes: int
    sha256: str
    """Of the file."""
    provenance: str
    installed: bool
    path: str
    """The file, or where it would be."""
    packages: tuple[str, ...]
    """The packages that hold its pieces, in order."""


class ListReadings(Contract):
    """A list of a provider and its last readings."""

    provider: str
    name: str
    readings: tuple[ReferenceReading, ...]
    """The newest first."""


class RestateConfig(Contract):
    """The configuration of a Restate server."""

    toml: str


class ImportedTools(LossReport):
    """What an import has made and dropped."""

    outcome: ImportOutcome | None = None
    """What became of each tool; null if none was stored."""


class RaisedError(Contract):
    """The traceback of an exception that a tool raised."""

    run_id: str
    position: str
    name: str
    """Of the tool."""
    text: str


class TraceDocument(Trace):
    """The trace of a run."""

    tracebacks: tuple[RaisedError, ...] | None = None
    """With `--traceback`."""


class RunSummary(Contract):
    """How a run stands, and what to do next."""

    run: Run
    next_steps: tuple[str, ...] = ()
    """Commands."""


class ForkedRun(Contract):
    """A fork, and how it differs from its run."""

    run: Run
    diff: RunDiff


class ExportedRun(Manifest):
    """A bundle that was written."""

    file: str
    bytes: int


class WaitingCall(Contract):
    """A call that has not ended: it waits for a person or a client."""

    run_id: str
    status: str
    next_steps: tuple[str, ...] = ()
    """Commands."""


class DemoMeta(Contract):
    """About the run of a demonstration."""

    run_id: str
    agentic_tool: str
    mode: str | None
    model: str
    status: str
    stop_reason: str | None
    total_cost: Any
    total_tokens: Any
    duration_ms: int | None
    warnings: tuple[str, ...]
    trace: JsonObject
    verified: JsonObject
    store: str | None
    crm_db: str | None = None


class DemoReport(Contract):
    """The outcome of a demonstration."""

    success: bool
    data: Json = None
    partial: Json = None
    error: ToolError | None = None
    meta: DemoMeta = Field()


class RefusedCommand(Contract):
    """What a command prints on stderr with `--json` if it is refused or fails."""

    error: CommandError


class StreamedResponse(Contract):
    """The last line of a stream: the whole response."""

    response: AgentResponse

"""The configuration files of MCP clients: where they are, what an entry looks like in them, and how one is written.

No secret is written: an entry refers to an environment variable, or to an input that the client asks for. Paths and
forms are those that the vendors document.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

from toolcrib.contracts import Conflict, InvalidInput, JsonObject, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.interfaces.cli.support.json_edit import NotJsonError, append_item, read_json, remove_at, set_member

ClientName: TypeAlias = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex"]

_LARGEST: Final = 20 * 1024 * 1024
"""Bytes of a configuration; Claude Code keeps its whole state in the same file."""
_SECTIONS: Final[Mapping[ClientName, str]] = {"vscode": "servers", "codex": "mcp_servers"}
_WITH_COMMENTS: Final = frozenset({"vscode", "cursor"})
_REFERENCE: Final = re.compile(r"\$\{[^}]+\}")
_HIDDEN: Final = "…"


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Where configurations are searched for."""

    platform: str
    """As `sys.platform` has it."""
    environment: Mapping[str, str]

    @property
    def home(self) -> Path:
        """The user's own folder."""
        name = "USERPROFILE" if self.platform == "win32" else "HOME"
        return Path(self.environment[name]) if self.environment.get(name) else Path.home()

    @property
    def settings(self) -> Path:
        """The folder of programs' settings."""
        if self.platform == "win32":
            return Path(self.environment.get("APPDATA") or self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    def file_of(self, client: ClientName, project: Path | None = None) -> Path:
        """The configuration of a client: the user's, or that of a project.

        Raises:
            InvalidInput: The client has no configuration for single projects.
        """
        if project is not None:
            inside = {
                "claude-code": ".mcp.json",
                "cursor": ".cursor/mcp.json",
                "vscode": ".vscode/mcp.json",
                "codex": ".codex/config.toml",
            }
            if client not in inside:
                raise InvalidInput(f"{client} has no configuration for single projects; leave --project out")
            return project / inside[client]
        match client:
            case "claude-code":
                return Path(self.environment.get("CLAUDE_CONFIG_DIR") or self.home) / ".claude.json"
            case "claude-desktop":
                return self.settings / "Claude" / "claude_desktop_config.json"
            case "cursor":
                return self.home / ".cursor" / "mcp.json"
            case "vscode":
                return self.settings / "Code" / "User" / "mcp.json"
            case "codex":
                return Path(self.environment.get("CODEX_HOME") or self.home / ".codex") / "config.toml"


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client reaches the server: it starts a command, or sends requests to an address."""

    command: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    """Environment variables that the command needs."""
    url: str = ""
    key_variable: str = ""
    """The environment variable that has the API key for the address."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """What is written for a server."""

    content: JsonObject
    inputs: tuple[JsonObject, ...] = ()
    """What VS Code asks the person for, and keeps in its own storage."""


def entry_of(client: ClientName, name: str, launch: Launch) -> ServerEntry:
    """The entry of a client for a server.

    Raises:
        InvalidInput: The client cannot reach the server in this way.
    """
    if client == "claude-desktop" and (launch.url or launch.variables):
        what = "an address" if launch.url else f"the variable {launch.variables[0]}"
        msg = f"the configuration of {client} cannot have {what} without a secret in it"
        raise InvalidInput(f"{msg}; use a store whose URL has no password, or add a connector in its settings")
    inputs: dict[str, JsonObject] = {}

    def reference(variable: str) -> str:
        if client == "vscode":
            key = f"{name}-{variable.lower()}"
            inputs[key] = {"type": "promptString", "id": key, "description": f"{variable} of {name}", "password": True}
            return f"${{input:{key}}}"
        return f"${{env:{variable}}}" if client == "cursor" else f"${{{variable}}}"

    if client == "codex":
        return ServerEntry(_codex(launch))
    typed = client in {"claude-code", "vscode"}
    if launch.url:
        content: JsonObject = {"type": "http"} if typed else {}
        content["url"] = launch.url
        if launch.key_variable:
            content["headers"] = {"Authorization": f"Bearer {reference(launch.key_variable)}"}
    else:
        content = {"type": "stdio"} if typed else {}
        content |= {"command": launch.command[0], "args": list(launch.command[1:])}
        if launch.variables:
            content["env"] = {variable: reference(variable) for variable in launch.variables}
    return ServerEntry(content, tuple(inputs.values()))


def _codex(launch: Launch) -> JsonObject:
    if launch.url:
        key: JsonObject = {"bearer_token_env_var": launch.key_variable} if launch.key_variable else {}
        return {"url": launch.url, **key}
    names: JsonObject = {"env_vars": list(launch.variables)} if launch.variables else {}
    return {"command": launch.command[0], "args": list(launch.command[1:]), **names}


@dataclass(slots=True)
class ClientFile:
    """The configuration of a client as it was read."""

    client: ClientName
    path: Path
    text: str
    """Empty if there is no file."""
    exists: bool
    content: JsonObject = field(default_factory=dict[str, Any])

    @classmethod
    def read(cls, client: ClientName, path: Path) -> "ClientFile":
        """Read a configuration.

        Raises:
            InvalidInput: It is not one that can be changed; nothing of it is repeated.
        """
        path = path.resolve()
        exists = path.exists()
        try:
            if exists and path.stat().st_size > _LARGEST:
                raise InvalidInput(f"{path} has more than {_LARGEST} bytes; nothing was written")
            text = path.read_bytes().decode() if exists else ""
            file = cls(client, path, text, exists)
            file.content = file._parse(text)
            file._section()
        except (OSError, ValueError) as problem:
            if isinstance(problem, InvalidInput):
                raise
            why = problem.strerror if isinstance(problem, OSError) else str(problem)
            msg = f"{path} cannot be read as the configuration of {client}: {why}; correct it; nothing was written"
            raise InvalidInput(msg) from None
        return file

    def entry(self, name: str) -> JsonObject | None:
        """The entry of a server; null if there is none."""
        found = self._section().get(name)
        return cast("JsonObject", found) if isinstance(found, dict) else None

    def with_entry(self, name: str, entry: ServerEntry) -> str:
        """The text with an entry."""
        if self.client == "codex":
            return self._edit_toml(name, entry.content)
        text = set_member(self.text, (self._key, name), entry.content, comments=self._comments)
        known = {each.get("id") for each in self._inputs()}
        for each in entry.inputs:
            if each["id"] not in known:
                text = append_item(text, "inputs", each, comments=self._comments)
        return text if text.endswith("\n") or self.exists else f"{text}\n"

    def without_entry(self, name: str) -> str:
        """The text without an entry, and without the inputs that only it used."""
        if self.client == "codex":
            return self._edit_toml(name, None)
        text = remove_at(self.text, (self._key, name), comments=self._comments)
        own = f"{name}-"
        places = [place for place, each in enumerate(self._inputs()) if str(each.get("id", "")).startswith(own)]
        for place in reversed(places):
            if f"${{input:{self._inputs()[place]['id']}}}" not in text:
                text = remove_at(text, ("inputs", place), comments=self._comments)
        return text

    def write(self, text: str) -> Path | None:
        """Write a text in place of the file, at once and whole; the copy of the file as it was, if there was one.

        Raises:
            Conflict: Another program has changed the file meanwhile.
            InvalidInput: The folder or the file cannot be written.
        """
        if self._parse(text) == self.content and text != self.text:
            raise Conflict(f"the change of {self.path} has no effect; nothing was written")
        try:
            now = self.path.read_bytes().decode() if self.path.exists() else ""
            if now != self.text:
                raise Conflict(f"{self.path} was changed by another program meanwhile; run the command again")
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            backup = self._replace(text)
        except OSError as problem:
            msg = f"{self.path} cannot be written: {problem.strerror}; change its rights or those of its folder"
            raise InvalidInput(msg) from problem
        return backup

    def _replace(self, text: str) -> Path | None:
        backup = self.path.with_name(f"{self.path.name}.bak") if self.exists else None
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if backup is not None:
            shutil.copy2(self.path, backup)
            shutil.copymode(self.path, name)
        Path(name).replace(self.path)
        return backup

    @property
    def _key(self) -> str:
        return _SECTIONS.get(self.client, "mcpServers")

    @property
    def _comments(self) -> bool:
        return self.client in _WITH_COMMENTS

    def _parse(self, text: str) -> JsonObject:
        if self.client == "codex":
            return tomllib.loads(text)
        found = read_json(text, comments=self._comments)
        if not isinstance(found, dict):
            raise NotJsonError("the document is not an object")
        return cast("JsonObject", found)

    def _section(self) -> JsonObject:
        found = self.content.get(self._key, {})
        if not isinstance(found, dict):
            raise NotJsonError(f"{self._key} is not an object")
        return cast("JsonObject", found)

    def _inputs(self) -> Sequence[JsonObject]:
        found = self.content.get("inputs", [])
        return cast("list[JsonObject]", found) if isinstance(found, list) else []

    def _edit_toml(self, name: str, entry: JsonObject | None) -> str:
        try:
            import tomlkit
        except ModuleNotFoundError as missing:
            raise Unavailable(missing_extra("the configuration of codex", missing.name, "mcp")) from missing
        document: Any = tomlkit.parse(self.text)
        if self._key not in document:
            document[self._key] = tomlkit.table(is_super_table=True)
        if entry is None:
            document[self._key].pop(name)
        else:
            document[self._key][name] = entry
        return tomlkit.dumps(document)


def http_launch(url: str, server: str | None, key_variable: str) -> Launch:
    """How a client reaches `toolcrib up` at an address.

    Raises:
        InvalidInput: The address is not one of http, or has a password or a key in it.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
        raise InvalidInput("--url must be an http or https address without a user, a password or a query")
    path = parts.path.rstrip("/") or "/mcp"
    address = urlunsplit((parts.scheme, parts.netloc, path if server is None else f"{path}/servers/{server}", "", ""))
    return Launch(url=address, key_variable=key_variable)


def command_launch(store: str | None, server: str | None) -> Launch:
    """How a client starts `toolcrib mcp` over the store of the settings.

    A URL that may have a password is not written: the command gets it from the environment.
    """
    from toolcrib.crib.settings import load_settings

    url = load_settings({"store": store}).settings.store
    program = Path(sys.executable).with_name("toolcrib.exe" if sys.platform == "win32" else "toolcrib")
    line = [str(program) if program.exists() else "toolcrib", "mcp", "serve"]
    line += [] if server is None else ["--server", server]
    if not url.startswith("sqlite:///"):
        return Launch(command=tuple(line), variables=("TOOLCRIB_STORE",))
    path = Path(url.removeprefix("sqlite:///")).absolute()
    return Launch(command=(*line, "--store", f"sqlite:///{path}"))


def masked(entry: JsonObject) -> JsonObject:
    """An entry without the values of headers and variables that are written out in it."""

    def safe(key: str, value: Any) -> Any:
        if key in {"env", "headers", "http_headers"} and isinstance(value, dict):
            parts = cast("JsonObject", value)
            return {name: part if _REFERENCE.search(str(part)) else _HIDDEN for name, part in parts.items()}
        return value

    return {key: safe(key, value) for key, value in entry.items()}


def shown(entry: JsonObject) -> str:
    """An entry as text."""
    return json.dumps(entry, ensure_ascii=False)

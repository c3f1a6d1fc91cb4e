"""Entries in the configurations of MCP clients."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolcrib.contracts import Conflict, InvalidInput
from toolcrib.interfaces.cli.admin.mcp_clients import ClientFile, ClientFiles, ClientName, Launch, entry_of
from toolcrib.interfaces.cli.app import app
from toolcrib.interfaces.cli.support.json_edit import read_json

pytestmark = pytest.mark.requirement("cli.mcp_install")

URL = "https://crib.example"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def install(*words: str, store: str | None = None) -> Any:
    environment = {"TOOLCRIB_STORE": store}
    return CliRunner().invoke(app, ["mcp", "install", *words], env=environment, catch_exceptions=False)


@pytest.mark.parametrize(
    ("client", "linux", "darwin", "windows"),
    [
        ("claude-code", ".claude.json", ".claude.json", ".claude.json"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "Roaming/Claude/claude_desktop_config.json",
        ),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
            "Roaming/Code/User/mcp.json",
        ),
        ("codex", ".codex/config.toml", ".codex/config.toml", ".codex/config.toml"),
    ],
)
def test_each_platform_has_its_places(client: ClientName, linux: str, darwin: str, windows: str) -> None:
    home = Path("/home/ann")
    assert ClientFiles("linux", {"HOME": str(home)}).file_of(client) == home / linux
    assert ClientFiles("darwin", {"HOME": str(home)}).file_of(client) == home / darwin
    environment = {"USERPROFILE": str(home), "APPDATA": str(home / "Roaming")}
    assert ClientFiles("win32", environment).file_of(client) == home / windows


def test_the_entries_refer_to_the_key_and_never_have_it(home: Path) -> None:
    for client in ("claude-code", "cursor", "vscode", "codex"):
        assert install(client, "--url", URL, "--server", "crm", "--yes").exit_code == 0
    code = json.loads((home / ".claude.json").read_text())["mcpServers"]["toolcrib"]
    cursor = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["toolcrib"]
    vscode = json.loads((home / ".config" / "Code" / "User" / "mcp.json").read_text())
    codex = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["toolcrib"]
    address = f"{URL}/mcp/servers/crm"
    assert code == {"type": "http", "url": address, "headers": {"Authorization": "Bearer ${TOOLCRIB_KEY}"}}
    assert cursor == {"url": address, "headers": {"Authorization": "Bearer ${env:TOOLCRIB_KEY}"}}
    assert vscode["servers"]["toolcrib"]["headers"] == {"Authorization": "Bearer ${input:toolcrib-toolcrib_key}"}
    assert (vscode["inputs"][0]["id"], vscode["inputs"][0]["password"]) == ("toolcrib-toolcrib_key", True)
    assert codex == {"url": address, "bearer_token_env_var": "TOOLCRIB_KEY"}


@pytest.mark.parametrize("client", ["claude-code", "claude-desktop", "cursor", "vscode", "codex"])
def test_an_entry_is_added_found_changed_and_removed_beside_others(home: Path, client: ClientName) -> None:
    path = ClientFiles("linux", {"HOME": str(home)}).file_of(client)
    other = '# mine\nmodel = "o"\n\n[mcp_servers.mail]\ncommand = "mail"\n'
    if client != "codex":
        section = "servers" if client == "vscode" else "mcpServers"
        other = json.dumps({"theme": "dark", section: {"mail": {"command": "mail"}}}, indent=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(other)
    path.chmod(0o600)

    added = json.loads(install(client, "--yes", "--json").stdout)
    again = json.loads(install(client, "--yes", "--json").stdout)
    changed = json.loads(install(client, "--server", "crm", "--yes", "--json").stdout)
    text = path.read_text()
    removed = json.loads(install(client, "--remove", "--yes", "--json").stdout)

    assert [each["action"] for each in (added, again, changed, removed)] == ["add", "unchanged", "change", "remove"]
    assert added["after"]["args"][:2] == ["mcp", "serve"]
    assert added["after"]["args"][-1] == f"sqlite:///{home / 'toolcrib.db'}"
    assert Path(removed["backup"]).read_text() == text
    assert "mail" in text
    assert (path.stat().st_mode & 0o777, path.with_name(f"{path.name}.bak").stat().st_mode & 0o777) == (0o600, 0o600)
    read = tomllib.loads if client == "codex" else read_json
    assert read(path.read_text()) == read(other)
    assert client != "codex" or path.read_text().startswith("# mine\n")


def test_comments_of_an_editor_stay_and_a_written_key_is_not_shown(home: Path) -> None:
    path = home / ".config" / "Code" / "User" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        '{\n  // mine\n  "servers": {"toolcrib": {"url": "x", "headers": {"Authorization": "Bearer s3cret"}}},\n}\n'
    )
    refused = install("vscode", "--url", URL)
    assert (refused.exit_code, "s3cret" in refused.output, "// mine" in path.read_text()) == (2, False, True)
    done = install("vscode", "--url", f"{URL}/mcp", "--yes")
    assert "s3cret" not in done.output
    assert "// mine" in path.read_text()
    assert read_json(path.read_text(), comments=True)["servers"]["toolcrib"]["url"] == f"{URL}/mcp"
    assert install("vscode", "--remove", "--yes").exit_code == 0
    assert read_json(path.read_text(), comments=True) == {"servers": {}, "inputs": []}


@pytest.mark.parametrize(
    ("client", "content", "problem"),
    [
        ("claude-code", '{"mcpServers": {', "line 1"),
        ("cursor", "[]", "not an object"),
        ("vscode", '{"servers": []}', "servers is not an object"),
        ("codex", "[mcp_servers", "cannot be read"),
    ],
)
def test_a_broken_file_is_refused_and_left_as_it_is(home: Path, client: ClientName, content: str, problem: str) -> None:
    path = ClientFiles("linux", {"HOME": str(home)}).file_of(client)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    refused = install(client, "--yes")
    assert (refused.exit_code, problem in refused.stderr, path.read_text()) == (2, True, content)


def test_what_would_write_a_secret_or_cannot_work_is_refused(home: Path) -> None:
    store = "postgresql://ann:s3cret@db.example/crib"
    desktop = install("claude-desktop", "--yes", store=store)
    cursor = install("cursor", "--yes", store=store)
    address = install("claude-code", "--url", "https://ann:s3cret@crib.example", "--yes")
    remote = install("claude-desktop", "--url", URL, "--yes")
    project = install("claude-desktop", "--project", "--yes")
    assert [each.exit_code for each in (desktop, cursor, address, remote, project)] == [2, 0, 2, 2, 2]
    assert "s3cret" not in "".join(each.output for each in (desktop, cursor, address))
    assert "s3cret" not in (home / ".cursor" / "mcp.json").read_text()
    assert '"TOOLCRIB_STORE": "${env:TOOLCRIB_STORE}"' in (home / ".cursor" / "mcp.json").read_text()


def test_a_file_that_another_program_changes_meanwhile_is_not_written(home: Path) -> None:
    path = home / ".claude.json"
    path.write_text("{}")
    file = ClientFile.read("claude-code", path)
    text = file.with_entry("toolcrib", entry_of("claude-code", "toolcrib", Launch(command=("toolcrib",))))
    path.write_text('{"state": 1}')
    with pytest.raises(Conflict, match="changed by another program"):
        file.write(text)
    assert path.read_text() == '{"state": 1}'
    with pytest.raises(InvalidInput, match="cannot be read"):
        ClientFile.read("claude-code", home)

"""The program as a whole: its version, help, completion, and suggestions for mistyped commands."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.cli.test_commands import waiting_run
from toolcrib.interfaces.cli.support.session import run_ids, tool_names

PROGRAM = Path(sys.executable).with_name("toolcrib")


@pytest.mark.requirement("cli.version")
def test_the_version_is_that_of_the_package() -> None:
    assert toolcrib("--version").stdout == f"toolcrib {version('toolcrib')}\n"


@pytest.mark.requirement("cli.help")
@pytest.mark.parametrize("path", [(), ("run",), ("run", "list"), ("tool", "import-mcp")])
def test_both_spellings_ask_for_help(path: tuple[str, ...]) -> None:
    short, long = toolcrib(*path, "-h"), toolcrib(*path, "--help")

    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert short.stdout.startswith("Usage: ")


@pytest.mark.requirement("cli.suggestions")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("tool", "create"), "'add' or 'import'"),
        (("agent", "delete"), "'remove'"),
        (("run", "lsit"), "'list'"),
        (("rnu",), "'run'"),
        (("key", "revoke"), "'remove'"),
        (("fragment", "ls"), "'list'"),
        (("agent", "get"), "'show' or 'list'"),
        (("account", "update"), "'set'"),
        (("run", "approve"), "'toolcrib approval approve'"),
        (("workflow", "create"), "'toolcrib workflow publish'"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_one_that_is_meant(typed: tuple[str, ...], meant: str) -> None:
    done = toolcrib(*typed)

    assert (done.exit_code, done.stdout) == (2, "")
    assert f"no command '{typed[-1]}'; did you mean {meant}?" in done.stderr


@pytest.mark.requirement("cli.suggestions")
def test_a_command_that_resembles_none_is_answered_with_where_they_are_listed() -> None:
    assert "'toolcrib run --help' lists the commands" in toolcrib("run", "xyzzy").stderr


@pytest.mark.requirement("cli.completion")
def test_bash_completes_commands_with_the_printed_script(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(toolcrib("completion", "bash").stdout, encoding="utf-8")
    probe = (
        f"source {script}; COMP_WORDS=(toolcrib key li); COMP_CWORD=2; "
        '_toolcrib_completion toolcrib; echo "${COMPREPLY[@]}"'
    )
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    bash = str(shutil.which("bash"))
    done = subprocess.run(
        [bash, "-c", probe], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    )

    assert done.stdout == "list\n"


@pytest.mark.requirement("cli.completion")
@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "toolcrib key li"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "toolcrib key li", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_other_shells_are_answered_in_their_own_form(shell: str, asked: dict[str, str]) -> None:
    assert "_TOOLCRIB_COMPLETE" in toolcrib("completion", shell).stdout
    given = {**os.environ, **asked, "_TOOLCRIB_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([PROGRAM], capture_output=True, text=True, check=False, env=given)

    assert "list" in done.stdout
    assert "remove" not in done.stdout


@pytest.mark.requirement("cli.completion")
def test_completion_is_installed_for_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = toolcrib("completion", "bash", "--install")

    assert done.stdout == f"installed in {tmp_path / '.bash_completions' / 'toolcrib.sh'}; open a new shell to use it\n"
    assert "toolcrib.sh" in (tmp_path / ".bashrc").read_text(encoding="utf-8")


@pytest.mark.requirement("cli.completion")
def test_ids_and_names_are_completed_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    run_id = waiting_run(store)
    monkeypatch.setenv("TOOLCRIB_STORE", store)

    assert (run_ids(""), run_ids(run_id[:8]), run_ids("x")) == ([run_id], [run_id], [])
    assert tool_names("de") == ["deals", "delete"]
    monkeypatch.setenv("TOOLCRIB_STORE", "sqlite:///none.db")
    assert tool_names("de") == []

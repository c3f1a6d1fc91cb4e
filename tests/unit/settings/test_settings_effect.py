"""What the settings do: to a crib, and on the command line."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, Limits, ScriptedModel, tool
from toolcrib.contracts import AgenticImplementation, InvalidSettings
from toolcrib.crib.settings import EgressSettings, Settings, setting_keys, variable_of
from toolcrib.infrastructure.store import MemoryStore


@tool(side_effects="reads")
async def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.requirement("settings.effect")
async def test_a_crib_from_settings_has_their_egress_model_and_limits() -> None:
    settings = Settings(
        store="memory://",
        model="scripted:s",
        limits=Limits(max_iterations=1),
        egress=EgressSettings(allow=("127.0.0.1:1",)),
    )
    model = ScriptedModel(["Done."], name="s")
    async with Crib.from_settings(settings, models={"scripted:s": model}) as crib:
        crib.add(look)
        looker = crib.agentic_tool("looker", mode="agentic", tools=["look"])
        implementation = looker.definition.implementation
        assert isinstance(implementation, AgenticImplementation)
        assert (implementation.llm.model, implementation.limits.max_iterations) == ("scripted:s", 1)
        assert crib.egress.allow == ("127.0.0.1:1",)
        assert (await looker("Look around")).output == {"summary": "Done."}


@pytest.mark.requirement("settings.effect")
async def test_a_crib_from_settings_reads_the_environment_that_it_is_given() -> None:
    environment = {"TOOLCRIB_EGRESS_ALLOW": "127.0.0.1:2", "TOOLCRIB_STORE": "nowhere://"}
    async with Crib.from_settings(store=MemoryStore(), environment=environment) as crib:
        assert crib.egress.allow == ("127.0.0.1:2",)


@pytest.mark.requirement("settings.effect")
async def test_an_agentic_tool_without_any_model_is_refused_with_what_to_do() -> None:
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidSettings, match=r"'looker' has no model; name one, or set TOOLCRIB_MODEL"):
            crib.agentic_tool("looker", mode="agentic", tools=["look"])


@pytest.mark.requirement("settings.shown")
def test_settings_are_printed_with_value_origin_and_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolcrib.toml").write_text("lease_s = 20\n")
    done = toolcrib(
        "settings", store="memory://", TOOLCRIB_EGRESS_ALLOW="127.0.0.1:1,[::1]:2", TOOLCRIB_PEPPER="x" * 40
    )

    assert (done.exit_code, done.stderr) == (0, "")
    rows = {line.split()[0]: " ".join(line.split()) for line in done.stdout.splitlines()}
    assert rows["store"] == "store memory:// environment TOOLCRIB_STORE"
    assert rows["lease_s"] == "lease_s 20.0 file TOOLCRIB_LEASE_S"
    assert rows["egress.allow"] == "egress.allow 127.0.0.1:1, [::1]:2 environment TOOLCRIB_EGRESS_ALLOW"
    assert rows["model"] == "model none default TOOLCRIB_MODEL"
    secrets = [" ".join(line.split()) for line in done.stdout.splitlines() if line.startswith("(secret)")]
    assert secrets == [
        "(secret) set, not shown environment TOOLCRIB_PEPPER",
        "(secret) not set environment TOOLCRIB_MASTER_KEYS",
    ]
    assert "xxxx" not in done.stdout


@pytest.mark.requirement("settings.shown", "settings.no_secrets")
def test_settings_are_printed_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = json.loads(toolcrib("settings", "--json", store="postgresql://u:swordfish@db/x").stdout)

    assert told["settings"]["store"] == {
        "value": "postgresql://***@db/x",
        "origin": "environment",
        "variable": "TOOLCRIB_STORE",
    }
    assert told["settings"].keys() == setting_keys().keys()
    assert all(facts["variable"] == variable_of(key) for key, facts in told["settings"].items())
    assert (told["file"], told["secrets"]) == (None, {"TOOLCRIB_PEPPER": False, "TOOLCRIB_MASTER_KEYS": False})


@pytest.mark.requirement("settings.effect")
def test_commands_work_by_the_file_unless_they_are_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolcrib.toml").write_text("store = 'sqlite:///mine.db'\n")
    missing = toolcrib("run", "list")
    assert (missing.exit_code, "there is no store at sqlite:///mine.db" in missing.stderr) == (1, True)
    other = toolcrib("run", "list", "--store", "sqlite:///other.db")
    assert "there is no store at sqlite:///other.db" in other.stderr


@pytest.mark.requirement("settings.unknown", "settings.effect")
def test_a_misspelt_setting_ends_any_command_with_status_2_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolcrib.toml").write_text("stor = 'x'\n")
    for command in (("run", "list"), ("settings",), ("demo", "crm"), ("demo", "research"), ("up",)):
        done = toolcrib(*command)
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "there is no setting 'stor'; did you mean 'store'?" in done.stderr

"""Versions of one name, what others have changed since a project was applied, and a process that is killed."""

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib
from toolcrib.contracts import PromptFragment
from toolcrib.crib.project import Project, prepare

TONE = "kind: fragment\nname: tone\ntext: Be brief.\n"
SPELL = """\
kind: tool
name: spell
version: {version}
side_effects: none
input_schema: {{type: object, properties: {{word: {{type: string}}}}}}
implementation: {{kind: code, source: "def main(word): return word"}}
"""
SECONDS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "words"
    project.mkdir()
    (project / "tone.yaml").write_text(TONE)
    for version in ("1.0.0", "2.0.0"):
        (project / f"spell-{version[0]}.yaml").write_text(SPELL.format(version=version))
    return project


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


def planned(folder: Path, store: str) -> dict[str, Any]:
    """What would change, by `name@version` or name."""
    plan = json.loads(toolcrib("apply", folder, "--plan", "--json", store=store).stdout)
    return {"@".join(filter(None, (each["name"], each["version"]))): each for each in plan["changes"]}


def apply(folder: Path, store: str, *options: str) -> str:
    done = toolcrib("apply", folder, "--yes", *options, store=store)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def versions(store: str) -> list[str]:
    async def listed() -> list[str]:
        async with Crib(store) as crib:
            rows = await crib.store.definitions.revisions("tool", "default")
            return sorted({f"{row.name}@{row.version}" for row in rows})

    return asyncio.run(listed())


@pytest.mark.requirement("projects.owned")
def test_a_version_without_its_document_is_removed_and_the_others_stay(folder: Path, store: str) -> None:
    apply(folder, store)
    (folder / "spell-1.yaml").unlink()
    changes = planned(folder, store)
    assert {name: each["action"] for name, each in changes.items()} == {
        "tone": "unchanged",
        "spell@1.0.0": "remove",
        "spell@2.0.0": "unchanged",
    }
    assert "- tool spell@1.0.0\n" in apply(folder, store)
    assert versions(store) == ["spell@2.0.0"]
    assert apply(folder, store).startswith("no changes")

    (folder / "spell-1.yaml").write_text(SPELL.format(version="1.0.0"))
    assert planned(folder, store)["spell@1.0.0"]["action"] == "create"
    apply(folder, store)
    assert planned(folder, store)["spell@1.0.0"]["action"] == "unchanged"


@pytest.mark.requirement("projects.owned")
def test_a_version_of_another_project_is_its_own_and_what_was_adopted_has_one_owner(folder: Path, store: str) -> None:
    apply(folder, store)
    other = folder.parent / "other"
    other.mkdir()
    (other / "spell.yaml").write_text(SPELL.format(version="3.0.0"))
    refused = toolcrib("apply", other, "--yes", store=store)
    assert "it belongs to the project 'words'" in refused.stderr
    (other / "spell.yaml").write_text(SPELL.format(version="2.0.0"))
    apply(other, store, "--adopt")
    (folder / "spell-2.yaml").unlink()
    assert apply(folder, store).startswith("no changes")
    (other / "spell.yaml").write_text("kind: project\nname: other\n")
    assert planned(other, store)["spell@2.0.0"]["action"] == "remove"


@pytest.mark.requirement("projects.drift")
def test_what_others_have_changed_since_the_last_apply_is_told(folder: Path, store: str) -> None:
    apply(folder, store)
    assert {each["drift"] for each in planned(folder, store).values()} == {None}

    async def change() -> None:
        async with Crib(store) as crib:
            await crib.fragments.save(PromptFragment(name="tone", text="Be long."))
            await crib.lifecycle.deprecate("spell@1.0.0", message="Old.")
            await crib.registry.remove("default", "spell", "2.0.0")

    asyncio.run(change())
    changes = planned(folder, store)
    assert changes["tone"]["action"] == "change"
    assert changes["tone"]["drift"].startswith("changed by ")
    life = "its life-cycle state was changed by others since the last apply"
    assert (changes["spell@1.0.0"]["action"], changes["spell@1.0.0"]["drift"]) == ("unchanged", life)
    removed = "removed by others since the last apply"
    assert (changes["spell@2.0.0"]["action"], changes["spell@2.0.0"]["drift"]) == ("create", removed)
    shown = toolcrib("apply", folder, "--plan", store=store).stdout
    assert f"= tool spell@1.0.0 (spell-1.yaml:1)\n    {life}\n" in shown
    assert shown.endswith("1 to create, 1 to change, 0 to remove, 1 unchanged\n")

    apply(folder, store)
    assert {each["drift"] for each in planned(folder, store).values()} == {None}


@pytest.mark.requirement("projects.drift", "projects.owned")
async def test_a_record_of_an_older_release_owns_all_versions_of_a_name(folder: Path, store: str) -> None:
    async with Crib(store) as crib:
        await (await prepare(crib, Project.read(folder))).apply(crib)
        [row] = await crib.store.definitions.revisions("project", "default")
        older = {"project": "words", "owns": {"fragment/tone": "fragment/tone", "tool/spell": "tool/spell"}}
        await crib.store.definitions.save(replace(row, content_hash="0" * 64, body=older))
        assert not (await prepare(crib, Project.read(folder))).plan.to_do
        await asyncio.to_thread(lambda: [file.unlink() for file in folder.glob("spell-*")])
        plan = (await prepare(crib, Project.read(folder))).plan
        assert [(each.name, each.version) for each in plan.to_do] == [("spell", "1.0.0"), ("spell", "2.0.0")]


KILLED = """\
import asyncio, os, signal, sys
from pathlib import Path
from toolcrib import Crib
from toolcrib.crib.project import Project, prepare
from toolcrib.infrastructure.store.sql import definitions

def die(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(folder, store, point):
    async with Crib(store) as crib:
        prepared = await prepare(crib, Project.read(Path(folder)))
        if point == "planned":
            die()
        elif point == "writing":  # in the transaction, after the new revisions and before the removals
            definitions._remove = die
        else:
            crib.refresh = die
        await prepared.apply(crib)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.requirement("projects.apply")
@pytest.mark.parametrize("point", ["planned", "writing", "written"])
def test_applying_again_completes_what_a_killed_process_began(folder: Path, store: str, point: str) -> None:
    apply(folder, store)
    (folder / "spell-1.yaml").unlink()
    (folder / "spell-3.yaml").write_text(SPELL.format(version="3.0.0"))
    command = [sys.executable, "-c", KILLED, str(folder), store, point]
    assert subprocess.run(command, timeout=SECONDS, check=False).returncode == -signal.SIGKILL

    is_done = point == "written"
    assert versions(store) == (["spell@2.0.0", "spell@3.0.0"] if is_done else ["spell@1.0.0", "spell@2.0.0"])
    assert apply(folder, store).startswith("no changes") is is_done
    assert versions(store) == ["spell@2.0.0", "spell@3.0.0"]
    assert apply(folder, store).startswith("no changes")

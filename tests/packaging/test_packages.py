"""The wheel and the sdist: built, installed into empty environments without a compiler, and used."""

import json
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.packaging import builds
from tests.packaging.builds import ROOT, Built, Installed

HERE: Final = Path(__file__).parent
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: Final[dict[str, list[str]]] = PROJECT["optional-dependencies"]
TESTED: Final = ("3.11", "3.12", "3.13")
RESOLVED: Final = ("3.11", "3.12", "3.13", "3.14")
SUPPORTED: Final = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
ALSO_RESOLVED: Final = ("aarch64-apple-darwin",)
MOST_DISTRIBUTIONS: Final = 36
"""With `cronsim`, one pure module, for the times of triggers."""
MOST_MEGABYTES: Final = 78.0
"""Of `pip install toolcrib`, without compiled files: 76 on Linux."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return builds.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The package without extras, on the Python of the tests."""
    return builds.install(str(built.wheel), Path(sys.executable), tmp_path_factory.mktemp("plain") / "venv")


def package(built: Built, extras: str = "") -> str:
    return f"toolcrib{extras} @ {built.wheel.as_uri()}"


@pytest.mark.slow
@pytest.mark.requirement("packaging.files")
def test_the_wheel_has_what_runs_and_nothing_else(built: Built):
    names = zipfile.ZipFile(built.wheel).namelist()
    [entry_points] = [name for name in names if name.endswith("entry_points.txt")]

    assert {name.partition("/")[0] for name in names} == {"toolcrib", "toolcrib-0.1.0.dist-info"}
    assert "toolcrib/py.typed" in names
    assert any(re.fullmatch(r"toolcrib/infrastructure/store/migrations/versions/r0001\w*\.py", name) for name in names)
    assert zipfile.ZipFile(built.wheel).read(entry_points).decode().split("\n\n")[1:] == [
        "[pytest11]\ntoolcrib = toolcrib.testing.pytest_plugin\n"
    ]


@pytest.mark.slow
@pytest.mark.requirement("packaging.files")
def test_the_sdist_has_source_tests_and_licence(built: Built):
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "uv.lock", "tests/conftest.py"} <= names


@pytest.mark.slow
@pytest.mark.requirement("packaging.pythons")
@pytest.mark.parametrize("version", TESTED)
def test_it_installs_without_a_compiler_and_runs(built: Built, version: str, tmp_path: Path):
    python = builds.find_python(version)
    if python is None:
        assert builds.resolve(package(built), version, SUPPORTED[:1], tmp_path) == {}
        pytest.skip(f"this machine has no Python {version}: the wheels were resolved, and nothing was run")
    environment = builds.install(str(built.wheel), python, tmp_path / "venv")
    done = json.loads(environment.run("python", str(HERE / "first_steps.py"), cwd=tmp_path).stdout)

    assert done["answer"] == "Found."
    assert done["steps"][-2:] == ["tool_call", "llm_call"]
    assert done["plugins"] == ["toolcrib"]
    assert "Usage: toolcrib" in environment.run("toolcrib", "--help", cwd=tmp_path).stdout


@pytest.mark.slow
@pytest.mark.requirement("packaging.wheels")
@pytest.mark.parametrize("version", RESOLVED)
def test_every_dependency_has_wheels_with_all_extras_too(built: Built, version: str, tmp_path: Path):
    assert builds.resolve(package(built, "[all]"), version, (*SUPPORTED, *ALSO_RESOLVED), tmp_path) == {}


@pytest.mark.slow
@pytest.mark.requirement("packaging.pythons")
def test_with_all_extras_every_module_loads_on_the_newest_python(built: Built, tmp_path: Path):
    python = next(found for version in reversed(TESTED) if (found := builds.find_python(version)) is not None)
    environment = builds.install(package(built, "[all]"), python, tmp_path / "venv")
    done = json.loads(environment.run("python", str(HERE / "every_module.py"), cwd=tmp_path).stdout)

    assert done["failed"] == {}
    assert done["loaded"] > 500


@pytest.mark.slow
@pytest.mark.requirement("packaging.light")
def test_without_extras_it_is_light(installed: Installed):
    assert installed.distributions <= MOST_DISTRIBUTIONS
    assert installed.megabytes <= MOST_MEGABYTES


@pytest.mark.slow
@pytest.mark.requirement("packaging.extras")
def test_a_missing_extra_is_named_with_its_command(installed: Installed, tmp_path: Path):
    said = json.loads(installed.run("python", str(HERE / "without_extras.py"), cwd=tmp_path).stdout)
    commands = {
        "up": "server",
        "key add --principal ann": "server",
        "demo research": "research",
        "tool import-mcp https://mcp.example.com/mcp --name mcp": "mcp",
    }
    for command in commands:
        done = installed.run("toolcrib", *command.split(), cwd=tmp_path, check=False)
        said[command] = done.stderr + done.stdout

    named = {what: sorted(set(re.findall(r"pip install 'toolcrib\[(.+?)\]'", text))) for what, text in said.items()}
    shown = {extra for found in named.values() for several in found for extra in several.split(",")}
    assert [f"{what}: {said[what]}" for what, found in named.items() if not found] == []
    assert {command: named[command] for command in commands} == {name: [extra] for name, extra in commands.items()}
    assert [text for text in said.values() if "Traceback" in text or "ModuleNotFoundError" in text] == []
    assert set(EXTRAS) - shown == {
        "ag-ui",  # tests/unit/agui/test_agui.py
        "all",
        "azure",  # tests/unit/llm/test_sdk.py
        "restate",  # tests/unit/engines_restate/test_worker.py
    }


@pytest.mark.slow
@pytest.mark.requirement("packaging.extras")
def test_the_demo_that_needs_no_extra_runs_without(installed: Installed, tmp_path: Path):
    done = installed.run("toolcrib", "demo", "crm", "--json", cwd=tmp_path)

    assert json.loads(done.stdout)["success"] is True


@pytest.mark.requirement("packaging.all")
def test_all_is_every_extra():
    [everything] = EXTRAS["all"]

    assert everything == f"toolcrib[{','.join(sorted(EXTRAS.keys() - {'all'}))}]"


@pytest.mark.requirement("packaging.platforms")
def test_the_stated_versions_are_those_that_are_tested():
    page = (ROOT / "docs" / "versioning.md").read_text(encoding="utf-8")
    stated = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]

    assert tuple(stated) == TESTED
    assert PROJECT["requires-python"] == f">={TESTED[0]}"
    for named in (*TESTED, "3.14", "x86_64", "aarch64", "macOS", "Windows"):
        assert named in page
    for extra in EXTRAS:
        assert f"`{extra}`" in page


@pytest.mark.requirement("packaging.changelog")
def test_the_changelog_tells_of_this_version():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.search(rf"^## {re.escape(PROJECT['version'])}\b", changes, re.MULTILINE)

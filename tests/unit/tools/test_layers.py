"""The import rules of `pyproject.toml`, on small packages that break them."""

import pytest

from tests.unit.tools.conftest import Repository

pytestmark = pytest.mark.requirement("repository.layers")

NEEDED = (
    "contracts",
    "core",
    "core/executor",
    "core/policy",
    "infrastructure",
    "infrastructure/store",
    "llm",
    "agents",
    "workflows",
)
LINT = ("-c", "from importlinter.cli import lint_imports_command as run; run(['--no-cache', '--no-logo'])")


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("contracts/m.py", "import toolcrib.llm", "toolcrib.contracts is not allowed to import toolcrib.llm"),
        ("agents/m.py", "import toolcrib.workflows", "toolcrib.agents is not allowed to import toolcrib.workflows"),
        ("llm/m.py", "def f():\n    import toolcrib.core", "toolcrib.llm is not allowed to import"),
        ("core/policy/m.py", "import toolcrib.core.executor", "toolcrib.core.policy is not allowed to import"),
        ("core/executor/m.py", "import toolcrib.infrastructure.store", "is not allowed to import toolcrib.infra"),
        ("odd/__init__.py", "", "toolcrib.odd"),
        ("core/odd/__init__.py", "", "toolcrib.core.odd"),
    ],
    ids=[
        "lower to higher",
        "neighbours",
        "late",
        "inside the core",
        "executor to a store",
        "outside the layers",
        "outside the layers of the core",
    ],
)
def test_an_import_against_the_layers_is_named(repository: Repository, path: str, line: str, rule: str):
    for package in NEEDED:
        repository.write(f"src/toolcrib/{package}/__init__.py", "")
    repository.write(f"src/toolcrib/{path}", f"{line}\n")

    check = repository.python(*LINT)

    assert check.returncode == 1
    assert rule in check.stdout


def test_a_cycle_between_two_folders_is_named(repository: Repository):
    for package in (*NEEDED, "agents/turn", "agents/history"):
        repository.write(f"src/toolcrib/{package}/__init__.py", "")
    repository.write("src/toolcrib/agents/turn/a.py", "import toolcrib.agents.history.b")
    repository.write("src/toolcrib/agents/turn/c.py", "")
    repository.write("src/toolcrib/agents/history/b.py", "import toolcrib.agents.turn.c")

    check = repository.python(*LINT)

    assert check.returncode == 1
    assert "No cycles are allowed in toolcrib.agents" in check.stdout


def test_imports_downwards_are_allowed_and_packages_may_be_missing(repository: Repository):
    for package in NEEDED:
        repository.write(f"src/toolcrib/{package}/__init__.py", "")
    repository.write("src/toolcrib/agents/m.py", "import toolcrib.infrastructure.store, toolcrib.core.executor\n")

    check = repository.python(*LINT)

    assert check.returncode == 0, check.stdout

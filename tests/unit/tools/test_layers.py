"""The import rules of `pyproject.toml`, on small packages that break them."""

import pytest

from tests.unit.tools.conftest import Repository

pytestmark = pytest.mark.requirement("repository.layers")

NEEDED = ("contracts", "executor", "store", "llm", "runtimes")
LINT = ("-c", "from importlinter.cli import lint_imports_command as run; run(['--no-cache', '--no-logo'])")


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("contracts/m.py", "import toolcrib.store", "toolcrib.contracts is not allowed to import toolcrib.store"),
        ("store/m.py", "import toolcrib.llm", "toolcrib.store is not allowed to import toolcrib.llm"),
        ("executor/m.py", "def f():\n    import toolcrib.runtimes", "toolcrib.executor is not allowed to import"),
        ("executor/m.py", "import toolcrib.store", "toolcrib.executor is not allowed to import toolcrib.store"),
        ("odd/__init__.py", "", "toolcrib.odd"),
    ],
    ids=["lower to higher", "neighbours", "late", "executor to a store", "outside the layers"],
)
def test_an_import_against_the_layers_is_named(repository: Repository, path: str, line: str, rule: str):
    for package in NEEDED:
        repository.write(f"src/toolcrib/{package}/__init__.py", "")
    repository.write(f"src/toolcrib/{path}", f"{line}\n")

    check = repository.python(*LINT)

    assert check.returncode == 1
    assert rule in check.stdout


def test_imports_downwards_are_allowed_and_packages_may_be_missing(repository: Repository):
    for package in NEEDED:
        repository.write(f"src/toolcrib/{package}/__init__.py", "")
    repository.write("src/toolcrib/runtimes/m.py", "import toolcrib.store, toolcrib.executor\n")

    check = repository.python(*LINT)

    assert check.returncode == 0, check.stdout

"""Run the tests nearest to what was changed, for about a minute: `python -m tools.quick [PYTEST ARGUMENT...]`.

Changed is what differs from where this branch left `main`, and what is not committed or not in git yet. A test reaches
a module over imports, those inside of functions included; the fewer imports on the way, the nearer it is. Tests of
changed files come first, then the nearest, of these the cheapest (`tests/durations.json`), until the time is used.
What is left out is counted: `make test` runs it. If nothing was changed, a few tests of each layer run.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import pytest

from tools.shares import ROOT, durations

FOLDERS = ("src", "tests", "examples", "benchmarks", "tools")
GIT = shutil.which("git") or "git"
BUDGET_S = 90
"""Recorded seconds of all tests that are chosen, which two processes share."""
UNRECORDED_S = 0.5
"""Of a file that is not in the records."""
SMOKE = (
    "tests/unit/contracts/test_errors.py",
    "tests/unit/executor/test_arguments.py",
    "tests/unit/policy/test_permissions.py",
    "tests/unit/runs/test_calls.py",
    "tests/unit/server/test_calls.py",
    "tests/unit/store/test_writer.py",
)
Imported: TypeAlias = Sequence[ast.Import | ast.ImportFrom]
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
OPTIONS = ("-n", "2", "--dist", "worksteal")


def changed(root: Path = ROOT) -> frozenset[str]:
    """Paths of files that were changed, made or removed since the branch left `main`."""
    base = git(root, "merge-base", "HEAD", "main") or git(root, "merge-base", "HEAD", "origin/main") or ["HEAD"]
    return frozenset((*git(root, "diff", "--name-only", base[0]), *git(root, "ls-files", "-o", "--exclude-standard")))


def git(root: Path, *arguments: str) -> Sequence[str]:
    """The lines that a command of git prints; none if it fails."""
    run = subprocess.run([GIT, *arguments], cwd=root, capture_output=True, text=True, check=False)
    return run.stdout.split("\n")[:-1] if run.returncode == 0 else ()


def modules(root: Path = ROOT) -> Mapping[str, str]:
    """Paths of all Python files, by the names under which they are imported."""
    paths = [path.relative_to(root).as_posix() for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    return {_name(path): path for path in paths}


def _name(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(root: Path, known: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """Which files each file imports, by path.

    A name that a package takes from a module of its own leads to that module, and not to all that the package has.
    """
    found: dict[str, Imported] = {}
    for name, path in known.items():
        found[name] = tuple(_statements(ast.parse((root / path).read_text(encoding="utf-8")).body))
    homes = {(name, alias): home for name, nodes in found.items() for alias, home in _names(nodes)}
    return {
        known[name]: frozenset(known[one] for one in _reached(nodes, homes, known)) for name, nodes in found.items()
    }


def _names(found: Imported) -> Iterator[tuple[str, str]]:
    """Each imported name, and the module it is taken from."""
    for node in found:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, node.module


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a body and of all bodies in it; expressions are passed over, because they hold none."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for inside in _BODIES:
            yield from _statements(getattr(node, inside, ()))


def _reached(found: Imported, homes: Mapping[tuple[str, str], str], known: Mapping[str, str]) -> Iterator[str]:
    for node in found:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif node.module in known:
            for alias in node.names:
                yield _home(str(node.module), alias.name, homes, known)


def _home(module: str, name: str, homes: Mapping[tuple[str, str], str], known: Mapping[str, str]) -> str:
    """The module that a name of a module comes from in the end."""
    seen = {module}
    while f"{module}.{name}" not in known:
        further = homes.get((module, name))
        if further is None or further not in known or further in seen:
            return module
        module = further
        seen.add(module)
    return f"{module}.{name}"


def distances(start: Collection[str], imported: Mapping[str, Collection[str]]) -> Mapping[str, int]:
    """How many imports lead from each file to the nearest changed one; files that reach none are not in it."""
    importers: dict[str, set[str]] = {}
    for path, found in imported.items():
        for one in found:
            importers.setdefault(one, set()).add(path)
    reached = dict.fromkeys(start, 0)
    edge = list(start)
    while edge:
        following = {path for one in edge for path in importers.get(one, ()) if path not in reached}
        reached |= dict.fromkeys(following, reached[edge[0]] + 1)
        edge = list(following)
    return reached


def readers(paths: Iterable[str], tests: Collection[str]) -> Iterator[str]:
    """The tests that read changed files which no code imports."""
    for path in paths:
        folder, nearest = PurePosixPath(path).parts[0], str(PurePosixPath(path).parent)
        if path in {"README.md", "mkdocs.yml"} or folder == "docs" or nearest == "tools/docs":
            yield from (test for test in tests if test.startswith("tests/docs/"))
        elif folder in {"tools", "pyproject.toml", "Makefile"} or nearest == "tests":
            yield from (test for test in tests if test.startswith("tests/unit/tools/"))
        elif folder == "tests" and not path.endswith(".py"):
            yield from (test for test in tests if test.startswith(f"{nearest}/"))


def chosen(reached: Mapping[str, int], tests: Collection[str], recorded: Mapping[str, float]) -> Sequence[str]:
    """Test files by distance and cost, as many as the time allows; changed ones always."""

    def cost(test: str) -> float:
        return recorded.get(test, UNRECORDED_S)

    found: list[str] = []
    spent = 0.0
    for test in sorted(reached.keys() & tests, key=lambda test: (reached[test], cost(test), test)):
        if reached[test] == 0 or spent + cost(test) <= BUDGET_S:
            found.append(test)
            spent += cost(test)
    return found


def select(root: Path = ROOT) -> tuple[Sequence[str], int]:
    """The test files to run, and how many more reach the change."""
    known = modules(root)
    paths = frozenset(known.values())
    tests = frozenset(path for path in paths if PurePosixPath(path).name.startswith("test_"))
    given = changed(root)
    if not given:
        return [test for test in SMOKE if test in tests], 0
    reached = {**dict.fromkeys(readers(given, tests), 1), **distances(given & paths, imports(root, known))}
    found = chosen(reached, tests, durations(root))
    return found, len(reached.keys() & tests) - len(found)


def main(arguments: list[str]) -> int:
    """Returns what pytest returns, and 0 if no test reaches the change. `--changed` only lists changed Python files."""
    if arguments == ["--changed"]:
        print(*sorted(path for path in changed() if path.endswith(".py") and (ROOT / path).exists()))
        return 0
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found, left = select()
    print(f"quick: {len(found)} files of tests; {left} more reach the change, which make test runs", flush=True)
    return int(pytest.main([*OPTIONS, *found, *arguments])) if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A project of a user in a folder of its own: the installed wheel, the examples, and the Python of the pages.

- A block of a page that is a file, by its title or its first line, is a module beside the other files of the page.
- All other blocks of a page are one function, which is given the names of `names_of_pages.py` that it uses. Both
  checkers read one module for each page.
- mypy and pyright read no configuration of this repository.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.packaging import builds
from tests.packaging.builds import ROOT

HERE: Final = Path(__file__).parent
PAGES: Final = ROOT / "docs"
OF_FRAMEWORKS: Final = {"exports.md", "recipes.md"}
"""Pages whose blocks need frameworks that are not installed in the project."""
GIVEN: Final = "names_of_pages"
"""The module with the names that pages use and do not define."""
USERS_PACKAGES: Final = ("pytest", "types-PyYAML", "types-grpcio", "types-grpcio-reflection", "types-protobuf")
"""What the user has beside Toolcrib and its extras."""

_BLOCK: Final = re.compile(r'^```python(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(r"# (\w+\.py)\n")
_UNUSED: Final = ("UnusedImport", "UnusedVariable", "UnusedFunction", "UnusedClass", "UnusedExpression")
"""A snippet may define what it does not use."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """An error of a checker."""

    file: str
    line: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Project:
    """The folder, and the environment that the package is installed into."""

    folder: Path
    environment: Path

    def mypy(self) -> list[Finding]:
        """What mypy in strict mode says. A page with files is a run of its own: they import each other by name."""
        configuration = self.folder / "mypy.ini"
        configuration.write_text("[mypy]\nstrict = True\nexclude = ^pages/\\w+/\n", encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--config-file", str(configuration), "--output", "json"]
        command += ["--python-executable", str(self.environment / "bin" / "python"), "--explicit-package-bases"]
        command += ["--cache-dir", str(self.environment / "mypy")]
        found: list[Finding] = []
        for place in (self.folder, *(each for each in (self.folder / "pages").iterdir() if each.is_dir())):
            done = self._run([*command, "."], place)
            assert done.returncode in (0, 1), done.stdout + done.stderr
            for one in map(json.loads, filter(None, done.stdout.splitlines())):
                if one["severity"] == "error":
                    file = (place / one["file"]).relative_to(self.folder).as_posix()
                    found.append(Finding(file, one["line"], one["code"], one["message"]))
        return sorted(found)

    def pyright(self) -> list[Finding]:
        """What pyright in strict mode says."""
        configuration = self.folder / "pyrightconfig.json"
        environment = {"venvPath": str(self.environment.parent), "venv": self.environment.name}
        lenient = {f"report{rule}": False for rule in _UNUSED}
        options = {"include": ["."], "typeCheckingMode": "strict", **lenient, **environment}
        configuration.write_text(json.dumps(options), encoding="utf-8")
        done = self._run(
            [sys.executable, "-m", "pyright", "--outputjson", "--project", str(configuration)], self.folder
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return sorted(
            Finding(
                Path(one["file"]).relative_to(self.folder).as_posix(),
                one["range"]["start"]["line"] + 1,
                one.get("rule", "syntax"),
                one["message"],
            )
            for one in json.loads(done.stdout)["generalDiagnostics"]
            if one["severity"] == "error"
        )

    @staticmethod
    def _run(command: list[str], place: Path) -> subprocess.CompletedProcess[str]:
        environment = builds.clean_environment() | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=place, env=environment, check=False, timeout=600
        )


def make(folder: Path) -> Project:
    """Build and install the wheel, and write the files of the project."""
    wheel = builds.build(folder / "dist").wheel
    environment = folder / "venv"
    builds.install(f"toolcrib[all] @ {wheel.as_uri()}", Path(sys.executable), environment)
    done = builds.run_uv("pip", "install", "--quiet", "--python", str(environment / "bin" / "python"), *USERS_PACKAGES)
    assert done.returncode == 0, done.stderr
    project = folder / "project"
    shutil.copytree(ROOT / "examples", project / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE / "mistakes", project / "mistakes", ignore=shutil.ignore_patterns("__pycache__"))
    for file in HERE.glob("*.py"):
        if not file.name.startswith("test_") and file.name != Path(__file__).name:
            shutil.copyfile(file, project / file.name)
    given = defined_at_the_top(ast.parse((HERE / f"{GIVEN}.py").read_text(encoding="utf-8")))
    for page in sorted(each for each in PAGES.rglob("*.md") if each.name not in OF_FRAMEWORKS):
        place = project / "pages" / "_".join(page.relative_to(PAGES).with_suffix("").parts).replace("-", "_")
        for name, text in modules_of(page.read_text(encoding="utf-8"), given):
            file = place / name if name else place.with_name(f"blocks_of_{place.name}.py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return Project(project, environment)


def modules_of(page: str, given: set[str]) -> Iterator[tuple[str, str]]:
    """The files of a page, and the module of its other blocks, which has no name: names and texts.

    >>> dict(modules_of("```python\\nprint(await crib.call('a'))\\n```\\n", {"crib"}))[""].splitlines()[2]
    'from names_of_pages import crib'
    """
    blocks: list[str] = []
    for title, block in _BLOCK.findall(page):
        named = title or (found[1] if (found := _FILE.match(block)) else "")
        if named:
            yield named, block
        else:
            blocks.append(block)
    if blocks:
        text = "\n".join(blocks)
        used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        lines = ['"""The blocks of a page, in one function."""', ""]
        lines += [f"from {GIVEN} import {name}" for name in sorted(used & given - defined_at_the_top(ast.parse(text)))]
        yield "", "\n".join([*lines, "", "async def page() -> None:", textwrap.indent(text, "    ")])


def defined_at_the_top(tree: ast.Module) -> set[str]:
    """The names that a module defines or imports."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in node.names}
            case _:
                names |= {
                    one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                }
    return names

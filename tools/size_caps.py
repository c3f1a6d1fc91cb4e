"""Hold files to 800 lines and functions to 60: `python -m tools.size_caps [ROOT]`.

A function counts from its `def` to its last line, docstring included. There are no waivers: what is too long is split.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("src", "tests", "examples", "benchmarks", "tools")
FILE_LIMIT = 800
FUNCTION_LIMIT = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """A file or a function that is longer than its limit, in lines."""

    path: Path
    line: int
    name: str
    size: int
    limit: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name} has {self.size} lines; the limit is {self.limit}"


def check_tree(root: Path) -> Iterator[Finding]:
    """Findings in every Python file of the checked folders, in the order of their paths."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield from check_source(path.read_text(encoding="utf-8"), path.relative_to(root))


def check_source(source: str, path: Path) -> Iterator[Finding]:
    """Findings in one file's text."""
    size = len(source.splitlines())
    if size > FILE_LIMIT:
        yield Finding(path, 1, "the file", size, FILE_LIMIT)
    for name, function in _functions(ast.parse(source, str(path))):
        size = (function.end_lineno or function.lineno) - function.lineno + 1
        if size > FUNCTION_LIMIT:
            yield Finding(path, function.lineno, f"{name}()", size, FUNCTION_LIMIT)


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, child
        yield from _functions(child, name)


def main(root: Path) -> int:
    """Print one line per finding; returns 1 if there is any."""
    findings = list(check_tree(root))
    for finding in findings:
        print(finding)
    if not findings:
        print(f"size caps: no file over {FILE_LIMIT} lines, no function over {FUNCTION_LIMIT}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))

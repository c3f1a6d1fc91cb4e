"""Hold the source to what a newcomer can find: `python -m tools.structure [ROOT]`.

- A folder of `src/toolcrib` has at most 12 entries beside `__init__.py` and `py.typed`; all of it has at most 760
  modules. Both without the synchronous facade and the REST client, which are generated.
- No two modules of one package have one name, and no public class name stands twice. The modules and classes of the
  generated packages have the names of those that they front.
- No constructor takes more than 8 arguments: an `__init__`, or the fields of a data class that has methods. What
  has none is data, and may have as many fields as it needs.
- No module, class or function of the source is named with a word that `docs/glossary.md` bans in names, and no page of
  `docs/` uses one that it bans in pages. Decision records keep the words of their time.
- No text of the source that a person may see, docstrings apart, has a word that it bans in pages, but for `KEPT_TEXTS`.
- The glossary's tables of decisions name every module of at least 150 lines; each module and number in them exists.
- Only `docs/specifications.md` and the pages below it name the specifications by number.

There are no waivers, but for names that a stored document or another process depends on (`KEPT`).
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.coverage_gate import GROUPS

SOURCE = Path("src/toolcrib")
GLOSSARY = Path("docs/glossary.md")
SPECIFICATIONS = Path("docs/specifications.md")
ENTRIES_LIMIT = 12
MODULES_LIMIT = 760
"""600 for the engine; the rest for testing, projects, doors and operation (docs/decisions/0012, 0046 and 0049)."""
ARGUMENTS_LIMIT = 8
FACADES = {"sync", "client"}
"""The packages that `tools/sync_facade.py` and `tools/rest_client.py` write, with the names of what they front."""
_WRITTEN = {Path("client/operations"), Path("client/blocking")}
"""Packages whose modules are written, and decide nothing."""
INDEXED_LINES = 150
"""From this length on, a module has a line in the glossary's tables of decisions."""
_OF_EVERY_PACKAGE = {"__pycache__", "__init__.py", "py.typed"}
KEPT = {"ToolError": "the code in a sandbox catches it by this name, as callers of tools do by the contract's"}
"""Public class names that may stand twice, each with the reason."""

KEPT_TEXTS = (
    "agents/evidence/second_reading.py",
    "agents/planner/outline_prompts.py",
    "agents/planner/step_results.py",
    "agents/evidence/value_sources.py",
    "agents/prepare/memory.py",
    "agents/turn/turns.py",
    "core/engines/driver.py",
    "core/engines/outcomes.py",
    "core/executor/approval.py",
    "core/executor/envelope.py",
    "core/policy/budget.py",
    "core/registry/links/locks.py",
    "core/runs/context/unknown_outcomes.py",
    "core/runs/interrupts/recovery.py",
    "crib/workflows/authoring.py",
    "kinds/*/runtime.py",
    "kinds/*/runtime/*.py",
    "kinds/entity/importer/generation.py",
    "llm/text/*.py",
    "workflows/run/waits.py",
)
"""Modules whose texts are prompts, or are recorded in journals: with other words an old run would not replay."""

_BANNED_HEADING = "## Words that we do not use"
_DECISIONS_HEADING = "## Where decisions are made"
_NUMBER = re.compile(r"(?<![\w.~^-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.%])")
_SPECIFICATION = re.compile(r"(?<![\w.,-])(?:00[0-4]|AGN-\d{3})(?![\w.-]*\w)")


def check(root: Path) -> Iterator[str]:
    """One line per finding."""
    modules = {path.relative_to(root / SOURCE): path for path in sorted((root / SOURCE).rglob("*.py"))}
    trees = {path: ast.parse(file.read_text(encoding="utf-8")) for path, file in modules.items()}
    yield from _folders(root)
    written = [path for path in modules if path.parts[0] not in FACADES]
    if len(written) > MODULES_LIMIT:
        yield f"{SOURCE}: {len(written)} modules; the limit is {MODULES_LIMIT}; merge fragments with one importer"
    yield from _module_names(trees)
    yield from _class_names(trees)
    yield from _constructors(trees)
    glossary = (root / GLOSSARY).read_text(encoding="utf-8") if (root / GLOSSARY).exists() else ""
    banned = banned_words(glossary)
    if _DECISIONS_HEADING in glossary:
        yield from _decisions(modules, decisions_by_module(glossary))
    yield from _banned_names(trees, banned)
    yield from _banned_prose(root, banned)
    yield from _banned_texts(trees, banned)
    yield from _specification_numbers(root)


@dataclass(frozen=True, slots=True)
class Banned:
    """What to say in place of a word, and where the word is banned."""

    instead: str
    in_names: bool
    in_pages: bool


def banned_words(glossary: str) -> dict[str, Banned]:
    """The glossary's table of words that are not used, by word."""
    found: dict[str, Banned] = {}
    for line in _section(glossary, _BANNED_HEADING):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "word":
            words, instead, where = cells
            found |= {
                word.strip().lower(): Banned(instead, where != "pages", where != "names") for word in words.split(",")
            }
    return found


def decisions_by_module(glossary: str) -> dict[Path, str]:
    """The glossary's tables of decisions: what is decided, by the module's path below the source."""
    folder, found = Path(), dict[Path, str]()
    for line in _section(glossary, _DECISIONS_HEADING):
        if line.startswith("### "):
            folder = Path(line.removeprefix("### ").strip("`"))
        elif line.startswith("| `"):
            module, decided = line.strip("| ").split(" | ", 1)
            found[folder / module.strip("`")] = decided
    return found


def _section(page: str, heading: str) -> list[str]:
    _, _, rest = page.partition(heading)
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].splitlines()


def _decisions(modules: Mapping[Path, Path], decisions: Mapping[Path, str]) -> Iterator[str]:
    for path, decided in decisions.items():
        if path not in modules:
            yield f"{GLOSSARY}: {path} is not a module of {SOURCE}; move its line to the module that decides now"
            continue
        source = re.sub(r"(?<=\d)[_,](?=\d{3})", "", modules[path].read_text(encoding="utf-8"))
        known = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", source)}
        for number in _NUMBER.findall(decided):
            if float(number.replace(",", "")) not in known:
                yield f"{GLOSSARY}: the line of {path} says {number}, which is not in that module"
    for path, file in modules.items():
        lines = len(file.read_text(encoding="utf-8").splitlines())
        if (
            lines >= INDEXED_LINES
            and path not in decisions
            and path.parent not in _WRITTEN
            and path.name != "__init__.py"
        ):
            yield f"{GLOSSARY}: {path} has {lines} lines; say what it decides under {_DECISIONS_HEADING!r}"


def _folders(root: Path) -> Iterator[str]:
    for folder in sorted({path.parent for path in (root / SOURCE).rglob("*.py")}):
        written = FACADES if folder == root / SOURCE else set[str]()
        entries = [each for each in folder.iterdir() if each.name not in _OF_EVERY_PACKAGE | written]
        if len(entries) > ENTRIES_LIMIT:
            place = folder.relative_to(root)
            yield f"{place}: {len(entries)} entries; the limit is {ENTRIES_LIMIT}; divide it by subject"


def _package_of(path: Path) -> str:
    depth = 2 if path.parts[0] in GROUPS else 1
    return "/".join(path.parts[: min(depth, len(path.parts) - 1)]) or SOURCE.name


def _module_names(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in trees:
        if path.name != "__init__.py" and path.parts[0] not in FACADES:
            found[_package_of(path), path.stem].append(path)
    for (package, name), paths in found.items():
        if len(paths) > 1:
            yield f"{package}: two modules are named {name!r}: {', '.join(map(str, paths))}"


def _class_names(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body if path.parts[0] not in FACADES else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    for name, paths in found.items():
        if len(paths) > 1 and name not in KEPT:
            yield f"two classes are named {name!r}: {', '.join(map(str, paths))}"


def _constructors(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    for path, tree in trees.items():
        for node in ast.walk(tree):
            count = _count_arguments(node) if isinstance(node, ast.ClassDef) else 0
            if isinstance(node, ast.ClassDef) and count > ARGUMENTS_LIMIT:
                place = f"{SOURCE / path}:{node.lineno}"
                yield f"{place}: {node.name} is made of {count} arguments; the limit is {ARGUMENTS_LIMIT}; group them"


def _count_arguments(node: ast.ClassDef) -> int:
    functions = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        if function.name == "__init__":
            arguments = function.args
            return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1
    from_fields = [*map(ast.unparse, node.decorator_list), *map(ast.unparse, node.bases)]
    is_made_of_fields = any("dataclass" in each or "NamedTuple" in each for each in from_fields)
    if not is_made_of_fields or not any(map(_is_method, functions)):
        return 0
    return len([each for each in node.body if isinstance(each, ast.AnnAssign) and _is_argument(each)])


def _is_method(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function of a class does something: it is neither special, nor a property, nor of the class."""
    others = {"property", "cached_property", "classmethod", "staticmethod"}
    return not function.name.startswith("__") and others.isdisjoint(map(ast.unparse, function.decorator_list))


def _is_argument(field: ast.AnnAssign) -> bool:
    made_inside = field.value is not None and "init=False" in ast.unparse(field.value)
    return not made_inside and "ClassVar" not in ast.unparse(field.annotation)


def _banned_names(trees: Mapping[Path, ast.Module], banned: Mapping[str, Banned]) -> Iterator[str]:
    for path, tree in trees.items():
        names = [(1, path.stem)]
        names += [
            (node.lineno, node.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for line, name in names:
            for word in words_of(name):
                if word in banned and banned[word].in_names:
                    yield f"{SOURCE / path}:{line}: {name!r} says {word!r}; say {banned[word].instead}"


def words_of(name: str) -> list[str]:
    """The words of an identifier, in small letters.

    >>> words_of("RunContext"), words_of("_settle_call"), words_of("HTTPDoor")
    (['run', 'context'], ['settle', 'call'], ['http', 'door'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _banned_prose(root: Path, banned: Mapping[str, Banned]) -> Iterator[str]:
    words = [re.escape(word) for word, each in banned.items() if each.in_pages]
    if not words:
        return
    pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    for place, line in _prose(root, GLOSSARY):
        for found in pattern.finditer(line):
            word = found.group(1).lower()
            yield f"{place}: {word!r}; say {banned[word].instead}"


def _banned_texts(trees: Mapping[Path, ast.Module], banned: Mapping[str, Banned]) -> Iterator[str]:
    words = [re.escape(word) for word, each in banned.items() if each.in_pages]
    if not words:
        return
    pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    for path, tree in trees.items():
        if not any(path.match(kept) for kept in KEPT_TEXTS):
            for line, text in _texts(tree):
                for found in pattern.finditer(text):
                    word = found.group(1).lower()
                    yield f"{SOURCE / path}:{line}: {word!r} in a text; say {banned[word].instead}"


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The string constants of several words, docstrings apart, each with its line."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
        if isinstance(node, ast.Constant) and isinstance(text, str) and " " in text.strip():
            yield node.lineno, text


def _specification_numbers(root: Path) -> Iterator[str]:
    for place, line in _prose(root, SPECIFICATIONS):
        for found in _SPECIFICATION.finditer(line):
            yield f"{place}: {found.group()!r}; describe it, and map the number in {SPECIFICATIONS}"


def _prose(root: Path, exception: Path) -> Iterator[tuple[str, str]]:
    """The lines of all pages but one and those below it, without inline code, each with its place."""
    records, below = root / "docs" / "decisions", (root / exception).with_suffix("")
    for page in sorted([*(root / "docs").rglob("*.md"), *root.glob("README.md")]):
        if page != root / exception and not {records, below} & {*page.parents}:
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                yield f"{page.relative_to(root)}:{number}", re.sub(r"`[^`]*`", "", line)


def main(root: Path) -> int:
    """Print one line per finding; returns 1 if there is any."""
    findings = list(check(root))
    for finding in findings:
        print(finding)
    if not findings:
        print("structure: folders, names, constructors and words are as they should be")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))

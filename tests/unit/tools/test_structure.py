"""The checks of folders, names and words, on small trees that break them."""

from pathlib import Path

import pytest

from tools import structure

ROOT = Path(__file__).parents[3]
GLOSSARY = """# Glossary

| term | meaning |
|---|---|
| desk | not in the table below |

## Words that we do not use

| word | instead | where |
|---|---|---|
| desk | client | names |
| attic, shelf | index | everywhere |
| anew, goes on | again | pages |
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "src/toolcrib/__init__.py", "")
    write(tmp_path, "docs/glossary.md", GLOSSARY)
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


@pytest.mark.requirement("repository.structure")
def test_a_tree_that_keeps_the_rules_passes(root: Path):
    for number in range(11):
        write(root, f"src/toolcrib/m{number}.py", f"class C{number}: ...\n")
    write(root, "docs/page.md", "A desk is a word that names alone may not have; `shelf` is code, and so is `004`.\n")
    write(root, "src/toolcrib/again.py", "def begin_anew(): ...\n")
    write(root, "docs/specifications.md", "AGN-005 and 004.\n")

    assert list(structure.check(root)) == []


@pytest.mark.requirement("repository.structure")
def test_a_folder_with_too_many_entries_is_named(root: Path):
    for number in range(13):
        write(root, f"src/toolcrib/m{number}.py", "")
    write(root, "src/toolcrib/py.typed", "")

    assert list(structure.check(root)) == ["src/toolcrib: 13 entries; the limit is 12; divide it by subject"]


@pytest.mark.requirement("repository.constructors")
def test_a_constructor_with_too_many_arguments_is_named(root: Path):
    arguments, fields = ", ".join(f"a{n}" for n in range(9)), "\n    ".join(f"a{n}: int" for n in range(9))
    write(root, "src/toolcrib/wide.py", f"class Wide:\n    def __init__(self, {arguments}): ...\n")
    write(root, "src/toolcrib/apart.py", f"class Apart:\n    def __init__(self, a, /, *, {arguments}): ...\n")
    method = "async def go(self): ..."
    write(root, "src/toolcrib/made.py", f"@dataclass(slots=True)\nclass Made:\n    {fields}\n    {method}\n")

    assert list(structure.check(root)) == [
        "src/toolcrib/apart.py:1: Apart is made of 10 arguments; the limit is 8; group them",
        "src/toolcrib/made.py:2: Made is made of 9 arguments; the limit is 8; group them",
        "src/toolcrib/wide.py:1: Wide is made of 9 arguments; the limit is 8; group them",
    ]


@pytest.mark.requirement("repository.constructors")
def test_data_and_what_a_constructor_makes_itself_are_not_counted(root: Path):
    fields = "\n    ".join(f"a{n}: int" for n in range(8))
    inside, method = "a8: int = field(default=0, init=False)\n    a9: ClassVar[int] = 1", "def go(self): ..."
    write(root, "src/toolcrib/made.py", f"@dataclass\nclass Made:\n    {fields}\n    {inside}\n    {method}\n")
    about = "@property\n    def about(self): ..."
    write(root, "src/toolcrib/data.py", f"class Data(NamedTuple):\n    {fields}\n    a8: int\n    {about}\n")

    assert list(structure.check(root)) == []


@pytest.mark.requirement("repository.structure")
def test_too_many_modules_are_counted(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(structure, "MODULES_LIMIT", 1)
    write(root, "src/toolcrib/m.py", "")

    assert list(structure.check(root)) == ["src/toolcrib: 2 modules; the limit is 1; merge fragments with one importer"]


@pytest.mark.requirement("repository.names")
def test_two_modules_of_one_name_in_a_package_are_named(root: Path):
    write(root, "src/toolcrib/core/runs/a/log.py", "")
    write(root, "src/toolcrib/core/runs/b/log.py", "")
    write(root, "src/toolcrib/core/policy/log.py", "")

    assert list(structure.check(root)) == [
        "core/runs: two modules are named 'log': core/runs/a/log.py, core/runs/b/log.py"
    ]


@pytest.mark.requirement("repository.names")
def test_two_public_classes_of_one_name_are_named(root: Path):
    write(root, "src/toolcrib/a.py", "class Answer: ...\nclass _Own: ...\n")
    write(root, "src/toolcrib/b.py", "class Answer: ...\nclass _Own: ...\n")

    assert list(structure.check(root)) == ["two classes are named 'Answer': a.py, b.py"]


@pytest.mark.requirement("repository.words")
@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        ("src/toolcrib/desk.py", "", "src/toolcrib/desk.py:1: 'desk' says 'desk'; say client"),
        ("src/toolcrib/m.py", "class RunDesk: ...", "src/toolcrib/m.py:1: 'RunDesk' says 'desk'; say client"),
        ("src/toolcrib/m.py", "def from_shelf(): ...", "src/toolcrib/m.py:1: 'from_shelf' says 'shelf'; say index"),
        ("docs/page.md", "One\nis in the Attic.", "docs/page.md:2: 'attic'; say index"),
        ("docs/page.md", "It goes on.", "docs/page.md:1: 'goes on'; say again"),
        (
            "docs/page.md",
            "As AGN-005 has it (0.004).",
            "docs/page.md:1: 'AGN-005'; describe it, and map the number in docs/specifications.md",
        ),
        ("docs/deep/page.md", "It goes on.", "docs/deep/page.md:1: 'goes on'; say again"),
        (
            "src/toolcrib/m.py",
            'def f():\n    raise ValueError(f"{1} goes on")',
            "src/toolcrib/m.py:2: 'goes on' in a text; say again",
        ),
    ],
    ids=["module", "class", "function", "page", "phrase", "specification", "page in a folder", "message"],
)
def test_a_banned_word_is_named_with_what_to_say_instead(root: Path, path: str, text: str, finding: str):
    write(root, path, text)

    assert list(structure.check(root)) == [finding]


@pytest.mark.requirement("repository.words")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docs/decisions/0001-first.md", "It goes on."),
        ("docs/specifications/first.md", "As AGN-005 has it."),
        ("src/toolcrib/m.py", '"""It goes on."""'),
        ("src/toolcrib/m.py", 'x = 1\n"""It goes on."""'),
        ("src/toolcrib/llm/text/m.py", 'x = "It goes on."'),
    ],
    ids=["decision record", "specification", "docstring", "docstring of a variable", "prompt"],
)
def test_records_specifications_docstrings_and_prompts_keep_their_words(root: Path, path: str, text: str):
    write(root, path, text)

    assert list(structure.check(root)) == []


@pytest.mark.requirement("repository.words")
def test_every_module_whose_texts_are_kept_exists():
    source = ROOT / structure.SOURCE
    assert [kept for kept in structure.KEPT_TEXTS if not list(source.glob(kept))] == []


@pytest.mark.requirement("repository.words")
def test_the_glossary_of_this_repository_is_read():
    words = structure.banned_words((ROOT / structure.GLOSSARY).read_text(encoding="utf-8"))

    assert words["attic"].in_pages
    assert not words["desk"].in_pages


@pytest.mark.requirement("repository.structure")
def test_the_tables_of_decisions_name_modules_and_numbers_that_exist_and_every_long_module(root: Path):
    rows = ["| `caps.py` | caps: at most 1,000 in 30 seconds |", "| `gone.py` | nothing |"]
    tables = [
        "## Where decisions are made",
        "### `core`",
        "| module | decides |",
        "|---|---|",
        *rows,
        "## More",
        "| `x` | y |",
    ]
    write(root, "docs/glossary.md", GLOSSARY + "\n" + "\n".join(tables))
    write(root, "src/toolcrib/core/caps.py", "MOST = 1_000\nSPAN_S = 31.0\n")
    write(root, "src/toolcrib/core/long.py", "\n" * 150)

    assert list(structure.check(root)) == [
        "docs/glossary.md: the line of core/caps.py says 30, which is not in that module",
        "docs/glossary.md: core/gone.py is not a module of src/toolcrib; move its line to the module that decides now",
        "docs/glossary.md: core/long.py has 150 lines; say what it decides under '## Where decisions are made'",
    ]

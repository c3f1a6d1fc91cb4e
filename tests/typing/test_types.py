"""A user's project is right for mypy and pyright in strict mode, and what is wrong in it is found."""

import re
from typing import Final

import pytest

from tests.typing import project
from tests.typing.project import Finding, Project

MISTAKES: Final = sorted(file.name for file in (project.HERE / "mistakes").glob("*.py"))
_EXPECTED: Final = re.compile(r"  # mypy: (?P<mypy>.+) \| pyright: (?P<pyright>.+)$", re.MULTILINE)
_CONSEQUENCES: Final = ("untyped-decorator", "reportUntypedFunctionDecorator", "reportUnknown")
"""What a checker says besides, of an expression that it could not give a type."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project.make(tmp_path_factory.mktemp("typing"))


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def findings(checker: str, made: Project) -> list[Finding]:
    """All that a checker says."""
    return made.mypy() if checker == "mypy" else made.pyright()


@pytest.mark.slow
@pytest.mark.requirement("packaging.types")
def test_the_examples_the_pages_and_the_public_surface_have_no_error(findings: list[Finding], made: Project) -> None:
    modules = [file.relative_to(made.folder) for file in made.folder.rglob("*.py")]
    assert [one for one in findings if not one.file.startswith("mistakes/")] == []
    assert sum(file.parts[0] == "pages" for file in modules) >= 35
    assert sum(file.parts[0] == "examples" for file in modules) >= 40


@pytest.mark.slow
@pytest.mark.requirement("packaging.types")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_error_where_it_was_made(findings: list[Finding], checker: str, name: str) -> None:
    text = (project.HERE / "mistakes" / name).read_text(encoding="utf-8")
    [expected] = _EXPECTED.finditer(text)
    told = [one for one in findings if one.file == f"mistakes/{name}"]
    causes = [one for one in told if not one.rule.startswith(_CONSEQUENCES)]
    [found] = [one for one in causes if not one.message.startswith("No overload variant")] or causes
    assert {one.line for one in told} == {text.count("\n", 0, expected.start()) + 1}
    assert expected[checker] in found.message


@pytest.mark.requirement("packaging.types")
def test_a_page_becomes_its_files_and_one_function() -> None:
    page = (
        '```python title="shop.py"\nx = 1\n```\n\n```python\n# use.py\nimport shop\n```\n\n'
        "```python\nawait crib.open()\n```\n```python\nprint(document)\n```\n"
    )
    made = dict(project.modules_of(page, {"crib", "document", "pepper"}))
    assert made["shop.py"] == "x = 1\n"
    assert made["use.py"] == "# use.py\nimport shop\n"
    assert made[""].splitlines()[2:] == [
        "from names_of_pages import crib",
        "from names_of_pages import document",
        "",
        "async def page() -> None:",
        "    await crib.open()",
        "",
        "    print(document)",
    ]


@pytest.mark.requirement("packaging.types")
def test_a_page_that_defines_a_name_is_not_given_it() -> None:
    made = dict(project.modules_of("```python\ncrib = 1\nprint(crib)\n```\n", {"crib"}))
    assert "import" not in made[""]

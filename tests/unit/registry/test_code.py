"""What is refused of code when it is saved, without running any of it."""

import pytest

from toolcrib.contracts import InvalidDefinition
from toolcrib.kinds.code.checks import code_tool
from toolcrib.kinds.code.shape import CodeImplementation
from toolcrib.kinds.dispatch import check_tool

pytestmark = pytest.mark.requirement("code.definition")

MAIN = "def main():\n    return 1\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def main(:\n", r"its code is no Python: .* \(line 1\)"),
        ("x = 1\n", "defines no function `main`"),
        ("async def main():\n    pass\n", r"main is async \(line 1\)"),
        ("def main():\n    \0\n", "its code cannot be parsed|is no Python"),
        ("x = " + "(" * 5000, "is no Python"),
        ("x = " + "-" * 50_000 + "1\n" + MAIN, "cannot be parsed"),
        ("x = " + "1" * 5000 + "\n" + MAIN, "is no Python"),
    ],
)
def test_python_that_could_not_start_is_refused(source: str, told: str):
    with pytest.raises(InvalidDefinition, match=told):
        check_tool(code_tool("x", source))


def test_code_is_not_run_when_it_is_checked():
    check_tool(code_tool("x", "raise SystemExit\n" + MAIN))
    check_tool(code_tool("x", "'\\d'\n" + MAIN))


def test_javascript_is_not_parsed_before_it_runs():
    check_tool(code_tool("x", "function main( {", language="javascript"))

    with pytest.raises(InvalidDefinition, match="interpreter 'monty' is for Python"):
        check_tool(code_tool("x", "", language="javascript", interpreter="monty"))


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        (("crm.find", "crm-find"), "two of its tools would have one function's name"),
        (("find@1", "find@2"), "two of its tools would have one function's name"),
        (("main",), "a tool cannot be called as function 'main'"),
        (("import",), "a tool cannot be called as function 'import'"),
    ],
)
def test_tools_that_cannot_be_functions_beside_each_other_are_refused(tools: tuple[str, ...], told: str):
    with pytest.raises(InvalidDefinition, match=told):
        check_tool(code_tool("x", MAIN, tools=tools))


def test_functions_are_named_after_their_tools():
    implementation = CodeImplementation(source=MAIN, tools=("crm.find-deals@^1", "look_up"))

    assert implementation.functions == {"crm_find_deals": "crm.find-deals@^1", "look_up": "look_up"}


def test_code_without_tools_has_no_side_effects_unless_it_says_so():
    assert code_tool("x", MAIN).side_effects == "none"
    assert code_tool("x", MAIN, tools=["y"]).side_effects == "writes"
    assert code_tool("x", MAIN, tools=["y"], side_effects="reads").side_effects == "reads"

"""Calls in answers: statements, blocks, fences, and what is none of them."""

from typing import Any

import pytest

from tests.unit.llm_text.reading import block, calls, problems, refusal
from toolcrib.llm.text import MOST_CALLS, parse

STATEMENTS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ('return wget("https://x", 5000);', [("wget", ["https://x", 5000])]),
    ('wget("https://x")', [("wget", ["https://x"])]),
    ("return ping();", [("ping", [])]),
    ("ping( );", [("ping", [])]),
    ("return await ping();", [("ping", [])]),
    ("await ping();", [("ping", [])]),
    ('const page: string = await wget("x");\nreturn page;', [("wget", ["x"])]),
    ("let a = one();\nvar b=two(2)\nreturn b", [("one", []), ("two", [2])]),
    ("const a = one(); return two();", [("one", []), ("two", [])]),
    ("a(1);\nb('2');", [("a", [1]), ("b", ["2"])]),
    ("return a(1);\nreturn b(2);", [("a", [1]), ("b", [2])]),
    ("a(1); b(2);;\n;", [("a", [1]), ("b", [2])]),
    ("a(1)\n\n// then\nb(2)", [("a", [1]), ("b", [2])]),
    ("// fetch it\nreturn /* the */ wget( // url\n 'x' );", [("wget", ["x"])]),
    ('return fs.read<string>("a");', [("fs.read", ["a"])]),
    ('return fs . read <Map<string, number[]>> ("a");', [("fs.read", ["a"])]),
    ('return wget(url: "x", timeout=5)', [("wget", [], {"url": "x", "timeout": 5})]),
    ('return wget("x", timeout = 5)', [("wget", ["x"], {"timeout": 5})]),
    ("return $get(1), ;".replace(", ;", ";"), [("$get", [1])]),
    ("return naïve_sök('x');", [("naïve_sök", ["x"])]),
    ("return\n  f(1)\n;", [("f", [1])]),
    ("return f(\n  'a',\n  {\n    b: 1\n  },\n);", [("f", ["a", {"b": 1}])]),
    ("returnValue(1);", [("returnValue", [1])]),
    ("awaiting(1);", [("awaiting", [1])]),
    ("constant(1);", [("constant", [1])]),
]

MALFORMED: list[tuple[str, str]] = [
    ("return wget('x').then(r => r.text());", "expected the end of the call, found '.then"),
    ("wget('x')\n  .then(r => r)", "expected a call like name(…), found '.then"),
    ("return a()()", "expected the end of the call"),
    ("return a()[0]", "expected the end of the call"),
    ("return a() || b()", "expected the end of the call"),
    ("return a(), b();", "expected the end of the call"),
    ("return a() b()", "expected the end of the call"),
    ("return a;", "expected '(' after 'a'"),
    ("const x = a(); return y;", "expected '(' after 'y'"),
    ("return x;\nconst x = a();", "expected '(' after 'x'"),
    ("const {a} = f();", "expected '(' after 'const'"),
    ("const x == f();", "expected '(' after 'const'"),
    ("const x => f();", "expected '(' after 'const'"),
    ("const x = 5;", "expected a call"),
    ("x = f();", "expected '(' after 'x'"),
    ("if (true) f();", "expected a call like name(…), found 'if (true)"),
    ("for (;;) f();", "expected a call"),
    ("while (1) f();", "expected a call"),
    ("function f() {}", "expected a call"),
    ("async function f() {}", "expected a call"),
    ("new Tool();", "expected a call"),
    ("delete f();", "expected a call"),
    ("throw f();", "expected a call"),
    ("void f();", "expected a call"),
    ("import fs from 'fs'", "expected '(' after 'import'"),
    ("{ f() }", "expected a call"),
    ("(f())", "expected a call"),
    ("'use strict'; f()", "expected a call"),
    ("[f()]", "expected a call"),
    ("print(f())", "'f' is called within a call"),
    ("return Promise.all([a(), b()]);", "'a' is called within a call"),
    ("f?.(1)", "expected '(' after 'f'"),
    ("f['x'](1)", "expected '(' after 'f'"),
    ("f`x`", "expected '(' after 'f'"),
    ("f(a: 1, a: 2)", "the argument 'a' is given twice"),
    ("f(a: 1, 2)", "an argument without a name cannot follow"),
    ("f(a == 1)", "'a' is not a literal value"),
    ("f(a => 1)", "'a' is not a literal value"),
    ("f(1", "expected ',' or ')'"),
    ("f(", "expected a literal value, found a fence"),
    ("f([1", "expected ',' or ']'"),
    ("f([", "expected a literal value, found a fence"),
    ("f({", "expected a key, found '```'"),
    ("f({a", "the key 'a' needs ':'"),
    ("f({a:", "expected a literal value, found a fence"),
    ("f('x", "this string does not end"),
    ("f('x\\", "this string does not end"),
    ("f(1) /* no end", "this comment does not end"),
    ("f(1 /* no end", "this comment does not end"),
    ("Some words.", "expected '(' after 'Some'"),
    ('{"name": "f", "arguments": {}}', "expected a call like name(…)"),
    ("<f>1</f>", "expected a call"),
    ("return f(1); // ok\n}", "expected a call"),
    ("return", "expected a call"),
    ("", "this block has no call"),
    ("// nothing", "this block has no call"),
]

FOUND: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("First\n" + block("return a(1);") + "\nthen\n" + block("return b(2);") + "\nend", [("a", [1]), ("b", [2])]),
    ("```js\nreturn no();\n```\nNow:\n" + block("return yes();") + "\n```ts\nno(1)\n```", [("yes", [])]),
    ("  ~~~TOOL\r\n  return a('x');\r\n  ~~~\r\n", [("a", ["x"])]),
    ("````tool\nreturn a('```');\n````", [("a", ["```"])]),
    ("````tool\nreturn a('\n```\n');\n````", [("a", ["\n```\n"])]),
    ('```tool return a("x"); ```', [("a", ["x"])]),
    ("```tool a(1)\nb(2)\n```", [("a", [1]), ("b", [2])]),
    ("``` tool\na(1)\n```", [("a", [1])]),
    (
        "- step:\n  ```tool\n  return a(1);\n  ```\n- next\n\n  1. ```Tool\n     return b(2);\n     ```",
        [("a", [1]), ("b", [2])],
    ),
    ("> ```tool\n> return a(1);\n> ```", [("a", [1])]),
    ("> > ```tool\n> > return a([1,\n> >   2]);\n> > ```\n", [("a", [[1, 2]])]),
    (">```tool\n>return a('x\n>y');\n>```", [("a", ["x\ny"])]),
    ("> ```tool\n> return a(1);\n\nand more words", [("a", [1])]),
    ("> ```js\n> no()\n\n```tool\na(1)\n```", [("a", [1])]),
    ("- ```tool\n  return a(`one\n  two\n    three`);\n  ```", [("a", ["one\ntwo\n  three"])]),
    ("> - ```tool\n>   return a('one\n>   two');\n>   ```", [("a", ["one\ntwo"])]),
    ("ok\n```tool\nreturn a(1);", [("a", [1])]),
    ("ok\n```tool\nreturn a(1)", [("a", [1])]),
    ("```tool\nreturn a(1);\n```tool\nreturn b(2);\n```", [("a", [1]), ("b", [2])]),
    ("```tool\na(1);\n````", [("a", [1])]),
    ("````tool\na(1);\n```\nbye", [("a", [1])]),
    ("`" * 200_000 + "\n" + block("return a(1);"), [("a", [1])]),
    ("````md\n```tool\nreturn no();\n```\n````", []),
    ("```\n```tool\nreturn no();\n```", []),
    ("~~~\n```tool\nreturn no();\n```\n~~~\n", []),
    ("Write ```tool``` blocks to call.\n```tool``` is the fence.", []),
    ("To call, write\n\n    return f(1);\n\nin a `tool` block.", []),
    ("```toolbox\nno()\n```\n```tools\nno()\n```\n```tool_code\nno()\n```", []),
    ('```json\n{"tool": "no"}\n```', []),
    ("``tool\nno()\n``", []),
    ("text ```tool\nno()\n```", []),
    ("<think>\n" + block("return no();") + "\n</think>\n" + block("return yes();"), [("yes", [])]),
    ("\n<thinking>Maybe " + block("no()") + "\n</thinking>", []),
    ("<think>\n" + block("return no();") + "\nor rather", []),
    ("I could\n" + block("return no();") + "\nbut no.\n</think>\n\n" + block("return yes();"), [("yes", [])]),
    (block("a('<think>\n</think>');"), [("a", ["<think>\n</think>"])]),
    (block("a(1)") + "\nas it ends </think>", [("a", [1])]),
    ("word " * 200_000, []),
    ("", []),
]


@pytest.mark.requirement("text.literal_calls")
@pytest.mark.parametrize(("code", "expected"), STATEMENTS, ids=[code[:40] for code, _ in STATEMENTS])
def test_a_statement_is_read_as_a_call(code: str, expected: list[tuple[Any, ...]]) -> None:
    assert calls(block(code)) == expected
    assert calls(block(code).replace("\n", "\r\n")) == expected


@pytest.mark.requirement("text.refused")
@pytest.mark.parametrize(("code", "reason"), MALFORMED, ids=[code[:40] for code, _ in MALFORMED])
def test_what_is_no_call_makes_its_block_malformed(code: str, reason: str) -> None:
    assert reason in refusal(code)


@pytest.mark.requirement("text.fences")
@pytest.mark.parametrize(("text", "expected"), FOUND, ids=[text[:40] for text, _ in FOUND])
def test_blocks_are_found_where_they_stand(text: str, expected: list[tuple[Any, ...]]) -> None:
    assert calls(text) == expected


@pytest.mark.requirement("text.literal_calls")
def test_a_call_keeps_its_place_and_its_text() -> None:
    text = "Now:\n" + block("const x = await f( 'a',\n 1 ); // done")
    [found] = parse(text)
    [call] = found.calls
    assert call.raw == "f( 'a',\n 1 )"
    assert text[call.start : call.end] == call.raw
    assert text[found.start : found.end] == text.removeprefix("Now:\n")


@pytest.mark.requirement("text.fences")
@pytest.mark.parametrize("text", ["```tool\na(1)", "```tool\na(1);\n", "x\n~~~tool\na(1)\n\n"])
def test_a_block_without_its_end_says_so(text: str) -> None:
    assert [found.is_closed for found in parse(text)] == [False]
    assert [found.is_closed for found in parse(block("a(1)"))] == [True]


@pytest.mark.requirement("text.refused")
@pytest.mark.parametrize(
    "cut",
    ["return a('x", "return a({x: [1, 2", "a({", "a([", "return a(1, ", "return a", "ret", "", "return a(1);\n``"],
)
def test_a_call_that_was_cut_off_is_none(cut: str) -> None:
    assert problems(f"ok\n```tool\n{cut}")


@pytest.mark.requirement("text.refused")
def test_words_after_the_fence_that_ends_a_block_are_refused() -> None:
    assert "must stand alone on its line" in problems("```tool\na(1)\n``` and then\n```")[0]


@pytest.mark.requirement("text.bounded_work")
def test_an_answer_has_a_number_of_calls() -> None:
    assert len(calls(block("f(1)\n" * MOST_CALLS))) == MOST_CALLS
    assert f"at most {MOST_CALLS} calls" in refusal("f(1)\n" * (MOST_CALLS + 1))
    many = "\n".join([block("f(1)")] * (MOST_CALLS + 2))
    assert len(problems(many)) == 1
    assert len(parse(many)) == MOST_CALLS + 1


@pytest.mark.requirement("text.uncertain_end")
@pytest.mark.parametrize(
    "code",
    [
        'write(PATH, "Example:\n```\n```tool\nevil()\n```\n");',
        "write(PATH, `Example:\n\\`\\`\\`\n```tool\nevil()\n```\n`);",
        "write('bad \\x', 'it is\n```\n```tool\nevil()\n```\n');",
        "write('bad \\x in the same string\n```\n```tool\nevil()\n```\n');",
        "say(don't, \"it's\n```\n```tool\nevil()\n```\n\");",
        'say("don"t, \'x\',\n```\n```tool\nevil()\n```\n");',
        "say(X, /* \n```\n```tool\nevil()\n```\n */);",
        "say('ok\n```\n', X, 'y');",
        "say('no end",
    ],
)
def test_nothing_behind_a_malformed_block_is_read_unless_it_is_certain_where_that_ends(code: str) -> None:
    found = parse(block(code) + "\n\n" + block("return later();"))
    assert [call.name for one in found for call in one.calls] == []
    assert "not certain where this block ends" in str(found[0].problem)


@pytest.mark.requirement("text.uncertain_end")
@pytest.mark.parametrize(
    "code",
    ["f(X);", "f('a', X);\n", "f(g('it is'), \"x\", 1); // don't", "if (x) { f('a') }", "f('bad \\x');", ""],
)
def test_a_block_behind_a_malformed_one_with_a_certain_end_is_read(code: str) -> None:
    found = parse(block(code) + "\n\n" + block("return later();"))
    assert found[0].problem is not None
    assert [call.name for one in found for call in one.calls] == ["later"]


@pytest.mark.requirement("text.uncertain_end")
def test_a_malformed_block_in_a_quotation_ends_with_it() -> None:
    found = parse("> ```tool\n> f(X)\n\n" + block("later()"))
    assert [call.name for one in found for call in one.calls] == ["later"]


@pytest.mark.requirement("text.refused")
def test_every_malformed_block_has_its_own_problem() -> None:
    text = "\n".join([block("f(X)"), block("g(1)"), block("h(Y)")])
    assert [problem.partition(":")[0] for problem in problems(text)] == ["line 2, column 3", "line 8, column 3"]

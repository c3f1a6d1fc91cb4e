"""Literal arguments, in the ways in which models write them."""

import json
from typing import Any

import pytest

from tests.unit.llm_text.reading import U, arguments, block, calls, refusal
from toolcrib.llm.text import parse

READ: list[tuple[str, list[Any]]] = [
    ('"https://example.com", 5000', ["https://example.com", 5000]),
    (r"""'She said "no" and didn\'t', "a \"b\" 'c'" """, ['She said "no" and didn\'t', "a \"b\" 'c'"]),
    ("[1, 2,], {a: [true, false,],},", [[1, 2], {"a": [True, False]}]),
    (
        "{url: 'x', 'k-2': 2, $v_1: null, 3: 'n', \"q\": -1.5e3}",
        [{"url": "x", "k-2": 2, "$v_1": None, "3": "n", "q": -1500}],
    ),
    ('{"a": {"b": [1, {"c": null}]}}', [{"a": {"b": [1, {"c": None}]}}]),
    ('`# T\nline "2"\n\\`x\\` \\${y} $ {z}`', ['# T\nline "2"\n`x` ${y} $ {z}']),
    ("/* the */ 'http://x/*no*/?a=1//2', // url\n /* ms */ 5 /* , 7 */", ["http://x/*no*/?a=1//2", 5]),
    ("True, False, None, undefined, 3", [True, False, None, U, 3]),
    ("1, undefined, undefined", [1]),
    ("undefined", []),
    ("[undefined, 1], {a: undefined, b: 2}", [[None, 1], {"b": 2}]),
    ("0xff, 0XfF, 0b11, 0o17, 1_000_000, 42n", [255, 255, 3, 15, 1_000_000, 42]),
    (".5, 5., 5.0, 1e3, 1.5E-3, 1_0.2_5, -0, +7, -.5", [0.5, 5, 5, 1000, 0.0015, 10.25, 0, 7, -0.5]),
    ("12345678901234567890123, -9007199254740993", [12345678901234567890123, -9007199254740993]),
    ("[12345678901234567890123]", [[12345678901234567890123]]),
    ("1e300, 9007199254740994.0", [1e300, 9007199254740994.0]),
    ("'a' + \"b\" +\n `c`", ["abc"]),
    ("['a' + 'b', {k: 'c' + 'd'}]", [["ab", {"k": "cd"}]]),
    ("('a' + ('b')), (1), ([2])", ["ab", 1, [2]]),
    (r'"\u4e16\u{1F600}\x41\ud83d\ude00"', ["世😀A😀"]),
    (r'["\ud83d\ude00"]', [["😀"]]),
    (r'"\n\t\r\b\f\v\0\q\/\$"', ["\n\t\r\b\f\v\0q/$"]),
    ("\"line 1\nline 2\n\", 'a\r\nb'", ["line 1\nline 2\n", "a\nb"]),
    ('"one \\\ntwo \\\r\nthree"', ["one two three"]),
    ('\u201chello \u2018you\u2019\u201d, \u2018it "is"\u2019', ["hello \u2018you\u2019", 'it "is"']),
    ('"héllo 世界 😀", {"ключ": "значение", naïve: 1}', ["héllo 世界 😀", {"ключ": "значение", "naïve": 1}]),
    ("{__proto__: {x: 1}, constructor: 2, a: 1, a: 2}", [{"__proto__": {"x": 1}, "constructor": 2, "a": 2}]),
    ('{"a": 1, "a": 2}', [{"a": 2}]),
    ("{true: 1, null: 2, return: 3}", [{"true": 1, "null": 2, "return": 3}]),
    ("{}, [], '', \"\", ``", [{}, [], "", "", ""]),
    ("\u00a0\ufeff[\u2028 1 ]\t", [[1]]),
    ("\"\u2028\", 'tab\there'", ["\u2028", "tab\there"]),
    ("'</script>', '{{x}}', '$(rm)', '#{x}'", ["</script>", "{{x}}", "$(rm)", "#{x}"]),
    ('\'__import__("os").system("true")\'', ['__import__("os").system("true")']),
]

REFUSED: list[tuple[str, str]] = [
    ("URL", "line 2, column 10: 'URL' is not a literal value"),
    ("process.env.KEY", "'process' is not a literal value"),
    ("true.x", "'true' is not a literal value"),
    ("null()", "'null' is called within a call"),
    ('getUrl("x")', "'getUrl' is called within a call; call it first"),
    ("await getUrl()", "'await' is not a literal value"),
    ("1 + 2", "expected ',' or ')', found '+ 2);'"),
    ("'a' + 1", "only strings can be joined"),
    ("1 + 'a'", "expected ',' or ')'"),
    ("'a' + name", "'name' is not a literal value"),
    ("'a' - 'b'", "no expressions"),
    ("2 ** 3", "no expressions"),
    ("a ? 1 : 2", "'a' is not a literal value"),
    ("1 ? 2 : 3", "no expressions"),
    ("!true", "expected a literal value, found '!true);'"),
    ("-x", "expected a literal value"),
    ("- 5", "expected a literal value"),
    ("typeof 1", "'typeof' is not a literal value"),
    ("() => 1", "expected a literal value"),
    ("x => x", "'x' is not a literal value"),
    ("function() { return 1 }", "'function' is called within a call"),
    ("async () => 1", "'async' is not a literal value"),
    ("class {}", "'class' is not a literal value"),
    ("new Date()", "'new' is not a literal value"),
    ("/ab+c/g", "expected a literal value"),
    ("...args", "'...' is not possible"),
    ("[...a]", "'...' is not possible"),
    ("{...a}", "'...' is not possible"),
    ("{a}", "the key 'a' needs ':'"),
    ("{[k]: 1}", "expected a key, found '[k]: 1});'"),
    ("{get a() { return 1 }}", "the key 'get' needs ':'"),
    ("{f() {}}", "the key 'f' needs ':'"),
    ("{`a`: 1}", "expected a key"),
    ("{1.5: 1}", "expected a key"),
    ("{01: 1}", "expected a key"),
    ("{a: 1 b: 2}", "expected ',' or '}'"),
    ("[1 2]", "expected ',' or ']'"),
    ("[1, , 2]", "expected a literal value, found ', 2]);'"),
    ("1, , 2", "expected a literal value"),
    (", 1", "expected a literal value"),
    ("NaN", "'NaN' is not a literal value"),
    ("Infinity", "'Infinity' is not a literal value"),
    ("-Infinity", "expected a literal value"),
    ("[NaN]", "'NaN' is not a literal value"),
    ("[-Infinity]", "expected a literal value"),
    ("1e999", "this number is too large"),
    ("[1e999]", "this number is too large"),
    ("017", "a number must not begin with 0"),
    ("-08", "a number must not begin with 0"),
    ("1__0", "begins like a number and is none"),
    ("1_", "begins like a number and is none"),
    ("0x", "begins like a number and is none"),
    ("0b12", "begins like a number and is none"),
    ("1.2.3", "begins like a number and is none"),
    ("5px", "begins like a number and is none"),
    ("1.toString()", "begins like a number and is none"),
    ("1.5n", "a number with 'n' is a whole one"),
    ("9" * 3001, "more than 3000 digits"),
    ("0x" + "f" * 3001, "more than 3000 digits"),
    ("`rm ${path}`", "'${' is not possible"),
    ("`a${`b${c}`}`", "'${' is not possible"),
    ("tag`x`", "'tag' is not a literal value"),
    (r"'\8'", "octal escapes are not possible"),
    (r"'\00'", "octal escapes are not possible"),
    (r"'\xg1'", "is no complete escape"),
    (r"'\u12'", "is no complete escape"),
    (r"'\u{110000}'", "there is no character 0x110000"),
    (r"'\ud83d'", "one half of a surrogate pair"),
    (r'["\ude00"]', "one half of a surrogate pair"),
    ("'a' 'b'", "expected ',' or ')'"),
    ("'it's'", "expected ',' or ')', found \"s'"),
    ('"a" . "b"', "expected ',' or ')'"),
    ("'abc'.length", "expected ',' or ')'"),
    ("[1][0]", "expected ',' or ')'"),
    ('{"a": 1}.a', "expected ',' or ')'"),
    ("(1, 2)", "expected ')'"),
    ("<b>x</b>", "expected a literal value"),
    ("@x", "expected a literal value"),
    ("#x", "expected a literal value"),
    ("1; 2", "expected ',' or ')'"),
]


@pytest.mark.requirement("text.literal_calls")
@pytest.mark.parametrize(("code", "expected"), READ, ids=[code[:40] for code, _ in READ])
def test_a_literal_is_read_as_what_it_means(code: str, expected: list[Any]) -> None:
    found = arguments(code)
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


@pytest.mark.requirement("text.refused")
@pytest.mark.parametrize(("code", "reason"), REFUSED, ids=[code[:40] for code, _ in REFUSED])
def test_what_is_no_literal_is_refused_where_it_stands(code: str, reason: str) -> None:
    assert reason in refusal(f"return f({code});")


@pytest.mark.requirement("text.refused")
def test_a_problem_names_its_line_and_column_in_the_whole_answer() -> None:
    [problem] = parse("First.\n\n" + block('return save("a",\n   {x: [1, Y]});'))[0:1]
    assert str(problem.problem).startswith("line 5, column 12: 'Y' is not a literal value")
    assert problem.problem is not None
    assert (problem.problem.line, problem.problem.column) == (5, 12)


@pytest.mark.requirement("text.bounded_work")
@pytest.mark.parametrize("opening", ["[", "{a:", "(", '{"a":', "[{b:"])
def test_nesting_is_bounded(opening: str) -> None:
    assert "nested more than 64 deep" in refusal("return f(" + opening * 100_000 + ");")


@pytest.mark.requirement("text.bounded_work")
def test_strict_and_loose_json_may_be_equally_deep() -> None:
    deep = "[" * 64 + "]" * 64
    assert arguments(deep) == [json.loads(deep)]
    assert arguments(deep[:64] + "," * 0 + " /* loose */ " + deep[64:]) == [json.loads(deep)]
    for text in ("[" * 65 + "]" * 65, "[" * 65 + "'x'" + "]" * 65, '[{"a":' * 33 + "1" + "}]" * 33):
        assert "nested more than 64 deep" in refusal(f"return f({text});")


@pytest.mark.requirement("text.literal_calls", "text.bounded_work")
def test_huge_arguments_are_read_whole() -> None:
    megabyte = "x" * 1_000_000
    many = list(range(50_000))
    assert calls(block(f'return write("a", "{megabyte}");')) == [("write", ["a", megabyte])]
    assert calls(block(f"return f({json.dumps(many)});")) == [("f", [many])]
    assert calls(block(f"return f([{','.join(map(str, many))},]);")) == [("f", [many])]


@pytest.mark.requirement("text.literal_calls")
def test_a_string_may_hold_what_looks_like_the_end_of_its_block() -> None:
    raw = "Use:\n```js\nx()\n```\nbye"
    assert calls(block(f'return write("r.md", "{raw}");')) == [("write", ["r.md", raw])]
    assert calls(block(f"return write('r.md', '{raw}');")) == [("write", ["r.md", raw])]
    assert calls(block(r'return write("r.md", "Use:\n```js\nx()\n```\n");')) == [
        ("write", ["r.md", "Use:\n```js\nx()\n```\n"])
    ]


@pytest.mark.requirement("text.refused")
def test_bare_backticks_end_a_template_literal_so_that_fences_in_one_are_refused() -> None:
    assert problems_of("return write('r.md', `Use:\n```js\nx()\n```\nbye`);")


def problems_of(code: str) -> str:
    found = [str(one.problem) for one in parse(block(code)) if one.problem]
    assert not any(one.calls for one in parse(block(code)))
    return found[0]

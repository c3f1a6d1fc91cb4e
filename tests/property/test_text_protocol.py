"""Properties of the text protocol: any answer is read, in linear work, as data; what is read is what was written."""

import ast
import inspect
import json
import random
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from types import FrameType
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.llm import Request, ScriptedModel, TextProtocol, Tool, ToolSet, user
from toolcrib.llm import text as package
from toolcrib.llm.text import Prose, Undefined, parse
from toolcrib.llm.text.examples import examples_of, write_call
from toolcrib.llm.text.functions import ToolFunction

SEEDS = (
    'Now:\n```tool\nreturn wget("https://x", 5000, {a: [1, -2.5e3, \'x\\u4e16\'], "b": null,},);\n```\nthen',
    "> ```tool\n> const page: string = await fs.read<T>(`a\n> \\`b\\``);\n> return page;\n> ```\n",
    "- ~~~TOOL\r\n  f(a: 1, b='2' + \"3\" + `4`)\r\n  g(\u201cx\u201d, 0xff, undefined)\r\n  ~~~\r\n",
    "```js\nno()\n```\n```tool\nf(/* c */ 1) // d\n```\n````tool\nwrite('```\n```tool\nevil()\n```')\n````",
    '```tool\nf(X)\n```\n```tool\nf("it\'s");\n```\n```tool\nf({"a": [[1, 2], {"b": "\\ud83d\\ude00"}]})',
    "```tool\nreturn finalResponse();\n```",
)
PIECES = (
    *"`~'\"\\{}[]()<>,;:.+-*/=$#&|!?\n\r \t\u2028\u201c\u201d\u2018\u2019\ud83daf019_é世",
    "```",
    "```tool\n",
    "\n```\n",
    "\n> ",
    "\n- ",
    "${",
    "/*",
    "*/",
    "//",
    "\\u",
    "\\x4",
    "return ",
    "await ",
    "const x = ",
    "undefined",
    "NaN",
    "...",
    "=>",
    "f(",
    ");",
    "1e999",
    "0x",
    "__proto__:",
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["```", "\n```\n", "${x}", "it's", '"', "\\", "\u2028", "*/", "😀"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def mutated(randomness: random.Random, text: str) -> str:
    """A text with some pieces put in, taken out, doubled or moved."""
    for _ in range(randomness.randint(1, 6)):
        start = randomness.randrange(len(text) + 1)
        end = min(len(text), start + randomness.randrange(12))
        match randomness.randrange(4):
            case 0:
                text = text[:start] + randomness.choice(PIECES) + text[start:]
            case 1:
                text = text[:start] + text[end:]
            case 2:
                text = text[:end] + text[start:end] * 2 + text[end:]
            case _:
                text = text[:start] + randomness.choice(SEEDS)[:20] + text[end:]
    return text


def is_data(value: Any) -> bool:
    """Whether a value is JSON, or was left out by word."""
    match value:
        case list():
            return all(map(is_data, cast("list[Any]", value)))
        case dict():
            members = cast("dict[Any, Any]", value)
            return all(isinstance(name, str) and is_data(item) for name, item in members.items())
        case _:
            return value is None or isinstance(value, bool | int | float | str | Undefined)


def check(text: str) -> None:
    """Read a text, and hold what comes of it against what must always be true."""
    end = 0
    for block in parse(text):
        assert end <= block.start < block.end <= len(text)
        assert (block.problem is None) is bool(block.calls)
        at = block.start
        for call in block.calls:
            assert at <= call.start < call.end <= block.end
            assert text[call.start : call.end] == call.raw
            assert is_data([*call.arguments, call.named])
            at = call.end
        if block.problem is not None:
            assert block.problem.line >= 1
            assert block.problem.column >= 1
        end = block.end


@pytest.mark.requirement("text.bounded_work", "text.refused")
@settings(max_examples=400)
@given(st.randoms(use_true_random=False), st.sampled_from(SEEDS))
def test_mutated_answers_are_read_without_any_failure(randomness: random.Random, seed: str) -> None:
    check(mutated(randomness, seed))


@pytest.mark.requirement("text.bounded_work", "text.refused")
@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_pieces_in_a_block_are_read_without_any_failure(pieces: list[str]) -> None:
    check("```tool\n" + "".join(pieces))
    check("".join(pieces))


@pytest.mark.soak
@pytest.mark.requirement("text.bounded_work")
def test_a_hundred_thousand_mutations_are_read_without_any_failure() -> None:
    randomness = random.Random(3)
    for _ in range(100_000):
        check(mutated(randomness, randomness.choice(SEEDS)))


class Writer:
    """Writes a JSON value as a literal in one of the many ways in which models do."""

    def __init__(self, randomness: random.Random) -> None:
        self._random = randomness

    def value(self, value: Any) -> str:
        match value:
            case None | bool():
                return self._random.choice(WORDS[value])
            case str():
                return self._string(value)
            case list():
                return self._list("[", [self.value(item) for item in cast("list[Any]", value)], "]")
            case dict():
                items = cast("dict[str, Any]", value).items()
                members = [f"{self._key(name)}{self._space()}: {self.value(item)}" for name, item in items]
                return self._list("{", members, "}")
            case int() if abs(value) < 2**60 and self._random.random() < 0.3:
                return ("-" if value < 0 else "") + self._random.choice([hex, bin, oct])(abs(value))
            case _:
                return json.dumps(value)

    def _list(self, opening: str, items: list[str], closing: str) -> str:
        comma = self._random.choice(["", ","]) if items else ""
        return opening + ",".join(self._space() + item + self._space() for item in items) + comma + closing

    def _space(self) -> str:
        return self._random.choice(["", "", " ", "\n  ", "/* c, ' */", "// d ]\n"])

    def _key(self, name: str) -> str:
        is_plain = name.isascii() and name.isidentifier()
        return name if is_plain and self._random.random() < 0.5 else self._quoted(name, self._random.choice("'\""))

    def _string(self, text: str) -> str:
        if text and self._random.random() < 0.2:
            half = len(text) // 2
            return f"{self._string(text[:half])} + {self._string(text[half:])}"
        return self._quoted(text, self._random.choice("'\"`"))

    def _quoted(self, text: str, quote: str) -> str:
        if quote == '"' and self._random.random() < 0.5:
            return json.dumps(text, ensure_ascii=self._random.random() < 0.5)
        text = text.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("${", "\\${").replace("\r", "\\r")
        return f"{quote}{text}{quote}"


WORDS: dict[Any, list[str]] = {None: ["null", "None"], True: ["true", "True"], False: ["false", "False"]}


@pytest.mark.requirement("text.literal_calls")
@settings(max_examples=300)
@given(json_values, st.randoms(use_true_random=False))
def test_any_json_value_however_it_is_written_reads_back_equal(value: Any, randomness: random.Random) -> None:
    [block] = parse(f"```tool\nreturn f({Writer(randomness).value(value)});\n```")
    assert block.problem is None
    assert block.calls[0].arguments == (value,)
    assert block.is_closed


@pytest.mark.requirement("text.arguments")
@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(["a", "b", "page-size", "in", "x y"]), json_values))
def test_any_arguments_that_are_written_for_the_model_read_back_equal(arguments: dict[str, Any]) -> None:
    properties: dict[str, Any] = {
        "a": {"type": "string"},
        "b": {"type": "boolean"},
        "page-size": {"type": "object"},
        "in": {"type": ["string", "object"]},
        "x y": {"type": "integer"},
    }
    function = ToolFunction(Tool("f", "", {"type": "object", "properties": properties, "required": ["b"]}), "f")
    [block] = parse(f"`````````tool\nreturn {write_call(function, arguments)};\n`````````")
    assert block.problem is None
    assert function.arguments(block.calls[0]) == arguments
    assert len(examples_of(function)) == 3


@pytest.mark.requirement("text.native_calls")
@settings(max_examples=300)
@given(st.randoms(use_true_random=False), st.sampled_from(SEEDS))
def test_however_a_stream_is_cut_what_is_shown_is_the_words_before_the_first_block(
    randomness: random.Random, seed: str
) -> None:
    text, prose, shown, at = mutated(randomness, seed), Prose(), "", 0
    while at < len(text):
        size = randomness.randint(1, 9)
        shown += prose.feed(text[at : at + size])
        at += size
    blocks = parse(text)
    words = text[: blocks[0].start] if blocks else text
    assert words.startswith(shown)
    assert prose.length == len(shown)
    assert "\n" not in words[len(shown) :]


@pytest.mark.requirement("text.native_calls")
@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(SEEDS))
async def test_what_the_model_wrote_goes_back_to_it_unmodified(randomness: random.Random, seed: str) -> None:
    text = mutated(randomness, seed)
    scripted = ScriptedModel([text, "Done."])
    model = TextProtocol(scripted, on_malformed=randomness.choice(["refuse", "skip"]))
    tools = ToolSet([Tool(name, "", {"type": "object"}) for name in ("f", "wget")])
    first = await model.request(Request(messages=(user("Go."),), tools=tools))
    await model.request(Request(messages=(user("Go."), first.message, user("And?")), tools=tools))
    assert scripted.requests[1].messages[1].text == text


# Work ---------------------------------------------------------------------------------------------------------------


def steps(work: Callable[[], Any]) -> int:
    """Calls of Python and C functions that a piece of work makes: a measure that no other process disturbs."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


SHAPES: dict[str, Callable[[int], str]] = {
    "loose objects": lambda n: f"```tool\nf({'{a: 1,},' * n});",
    "strict objects": lambda n: f"```tool\nf({'{}, ' * n});".replace("{}", '{"a": [1]}'),
    "one loose array": lambda n: f"```tool\nf([{'1,' * n}]);",
    "joined strings": lambda n: f"```tool\nf({' + '.join(['`a`'] * n)});",
    "escapes": lambda n: "```tool\nf('" + "\\n" * n + "');",
    "lines in a string": lambda n: "> ```tool\n> f('" + "\n> " * n + "');",
    "fences in a string": lambda n: "```tool\nf('" + "\n```\n" * n + "');",
    "comments": lambda n: "```tool\nf(" + "/**/ //\n" * n + ");",
    "calls": lambda n: "```tool\n" + "f(1);\n" * n + "```",
    "malformed blocks": lambda n: "```tool\nf(X)\n```\n" * n,
    "well-formed blocks": lambda n: "```tool\nf(1)\n```\n" * n,
    "quoted blocks": lambda n: "> ```js\n> f(X)\n> ```\n" * n,
    "fences": lambda n: "```\n" * n,
    "longer and longer fences": lambda n: "".join("`" * (3 + i % 14) + "\n" for i in range(n)),
    "inline code": lambda n: "```x``` y\n" * n,
    "open brackets": lambda n: "```tool\nf(" + "[" * n,
    "backticks": lambda n: "`" * n,
    "margins": lambda n: "> - " * n + "```tool\n",
    "spaces": lambda n: " " * n + "\n" + "\t>" * n,
    "signs": lambda n: "```tool\nf(" + "+" * n,
    "quotes": lambda n: "```tool\nf(X" + "'" * n + "\n```\n",
    "generics": lambda n: "```tool\nf<" + "<a>" * n + "(1)\n```",
    "dots": lambda n: "```tool\nf" + " . f" * n + "(1)\n```",
}


@pytest.mark.requirement("text.bounded_work")
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_text_is_at_most_twice_the_work(shape: str) -> None:
    small, large = SHAPES[shape](2_000), SHAPES[shape](4_000)
    parse(small)
    parse(large)
    assert steps(lambda: parse(large)) <= 2 * steps(lambda: parse(small)) + 200


@pytest.mark.requirement("text.refused")
def test_the_reader_has_nothing_that_could_run_code_or_reach_out() -> None:
    allowed = {
        "collections",
        "dataclasses",
        "difflib",
        "functools",
        "json",
        "math",
        "msgspec",
        "orjson",
        "re",
        "typing",
    }
    forbidden = {"eval", "exec", "compile", "__import__", "getattr", "setattr", "open", "globals", "input"}
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        tree = ast.parse(inspect.getsource(import_module(module.name)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                assert node.id not in forbidden, module.name
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                assert {name.partition(".")[0] for name in names} <= {*allowed, "toolcrib"}, module.name

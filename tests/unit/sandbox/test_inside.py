"""The program inside a jail, run with our own harmless code in a plain process, so that its lines are measured."""

import subprocess
import sys
from typing import Any

import orjson
import pytest

pytestmark = pytest.mark.requirement("sandbox.inside")


def framed(frame: Any) -> bytes:
    payload = orjson.dumps(frame)
    return len(payload).to_bytes(4, "big") + payload


def run(dialect: str, source: str, *answers: Any, **arguments: Any) -> tuple[list[Any], str]:
    """The frames that it sends, and what it prints."""
    start = {
        "dialect": dialect,
        "source": source,
        "arguments": arguments,
        "functions": ["f"],
        "seed": "7",
        "memory_mb": 64,
        "largest": 1000,
    }
    ran = subprocess.run(
        [sys.executable, "-m", "toolcrib.infrastructure.sandbox.jail_program", '{"CORE": 0}'],
        input=b"".join(map(framed, (start, *answers))),
        capture_output=True,
        check=True,
    )
    frames: list[Any] = []
    data = ran.stdout
    while data:
        size = int.from_bytes(data[:4], "big")
        frames.append(orjson.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    return frames, ran.stderr.decode()


ASKED = {"kind": "asked", "function": "f", "arguments": {"x": 1}}
OUTPUT, FAILURE = {"output": 2, "failure": None}, {"output": None, "failure": "DENIED: no"}


@pytest.mark.parametrize(
    ("dialect", "source"),
    [
        ("cpython", "def main(n):\n    print('here')\n    return n + f(x=1)\n"),
        ("restricted", "def main(n):\n    print('here')\n    n += f(x=1)\n    return n\n"),
        ("quickjs", "function main({n}) { console.log('here'); return n + f({x: 1}) }"),
    ],
)
def test_a_program_asks_prints_and_returns(dialect: str, source: str):
    frames, printed = run(dialect, source, OUTPUT, n=40)

    assert frames == [ASKED, {"kind": "returned", "output": 42}]
    assert printed == "here\n"


@pytest.mark.parametrize(
    ("dialect", "source", "failed"),
    [
        ("cpython", "def main():\n    return f(x=1)\n", ("ToolError", "DENIED: no", 2)),
        ("quickjs", "function main() {\n  return f({x: 1}) }", ("ToolError", "DENIED: no", None)),
    ],
)
def test_a_failure_of_a_tool_is_raised(dialect: str, source: str, failed: tuple[Any, ...]):
    frames, _ = run(dialect, source, FAILURE)

    assert frames[0] == ASKED
    assert (frames[1]["type"], frames[1]["message"]) == failed[:2]
    assert failed[2] in (None, frames[1]["line"])


@pytest.mark.parametrize(
    ("dialect", "source", "failed"),
    [
        ("cpython", "def main():\n  (", ("SyntaxError", "'(' was never closed (<code>, line 2)", 2)),
        ("cpython", "def main():\n  return {1}", ("TypeError", None, None)),
        ("cpython", "def main():\n  return 'x' * 5000", ("OutputTooLarge", "", None)),
        (
            "cpython",
            "class E(Exception):\n  def __str__(self):\n    1 / 0\ndef main():\n  raise E",
            ("E", "its message cannot be shown", 5),
        ),
        ("restricted", "def main():\n  return main.__globals__", ("SyntaxError", None, None)),
        ("cpython", "def main():\n  raise ValueError(chr(0xD800))", ("ValueError", "?", 2)),
        ("cpython", "def main():\n  return chr(0xD800)", ("TypeError", None, None)),
        ("quickjs", "function main() {\n  return g }", ("ReferenceError", "g is not defined", 2)),
        ("quickjs", "function main() { f(1) }", ("TypeError", "f takes one object", 7)),
        (
            "quickjs",
            "async function main() { return 1 }",
            ("TypeError", "main returned a promise; write a plain function, tools are called without await", None),
        ),
    ],
)
def test_a_failure_is_told_with_its_type_and_line(dialect: str, source: str, failed: tuple[Any, ...]):
    ((frame,), _) = run(dialect, source)

    assert frame["kind"] == "failed"
    assert frame["type"] == failed[0]
    assert failed[1] in (None, frame["message"])
    assert frame["line"] == failed[2]

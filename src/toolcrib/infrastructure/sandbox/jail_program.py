"""The program inside a jail: it applies its quotas, reads a job, runs the code, and exchanges frames.

It uses only the standard library, and no process of ours imports it. It is not a security boundary: the jail is.
Frames are read from descriptor 0 and written to 1; printed text goes to 2.
"""

import builtins
import io
import json
import math
import operator
import os
import random
import re
import resource
import struct
import sys
import threading
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

SOURCE = "<code>"
LENGTH = struct.Struct(">I")
MOST_SAID = 2000


class ToolError(RuntimeError):
    """A tool that the code has called has failed; the code may catch it."""


class OutputTooLarge(Exception):
    """The code returns or asks more than it may."""


class Channel:
    """The frames. One question at a time, whatever threads the code has."""

    def __init__(self, inbox: io.BufferedReader, outbox: io.FileIO) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._turn = threading.Lock()
        self.largest = 0

    def read(self) -> Any:
        """Read a frame."""
        (length,) = LENGTH.unpack(self._inbox.read(LENGTH.size))
        return json.loads(self._inbox.read(length))

    def write(self, frame: dict[str, Any]) -> None:
        """Write a frame."""
        payload = json.dumps(frame, allow_nan=False, ensure_ascii=False).encode()
        if self.largest and len(payload) > self.largest:
            raise OutputTooLarge
        left = memoryview(LENGTH.pack(len(payload)) + payload)
        while left:
            left = left[self._outbox.write(left) :]

    def ask(self, function: str, arguments: dict[str, Any]) -> Any:
        """Have a tool called."""
        with self._turn:
            self.write({"kind": "asked", "function": function, "arguments": arguments})
            answer = self.read()
        if answer["failure"] is not None:
            raise ToolError(answer["failure"])
        return answer["output"]


def open_channel() -> Channel:
    """Take the frames away from where the code prints."""
    inbox, outbox = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return Channel(io.BufferedReader(io.FileIO(inbox)), io.FileIO(outbox, "w"))


def function_of(channel: Channel, name: str) -> Callable[..., Any]:
    """A tool as a function."""

    def call(**arguments: Any) -> Any:
        return channel.ask(name, arguments)

    call.__name__ = call.__qualname__ = name
    return call


def run_python(job: dict[str, Any], functions: dict[str, Callable[..., Any]]) -> Any:
    """Run the code as it is."""
    names: dict[str, Any] = {"__name__": "code", "__builtins__": builtins, "ToolError": ToolError, **functions}
    exec(compile(job["source"], SOURCE, "exec"), names)  # noqa: S102 - what this program is for; it runs in a jail only
    return names["main"](**job["arguments"])


class Printer:
    """Where RestrictedPython sends what is printed."""

    def __init__(self, _getattr: Any = None) -> None:
        pass

    def _call_print(self, *values: Any, **options: Any) -> None:
        print(*values, sep=options.get("sep"), end=options.get("end"))  # noqa: T201 - what the code asks for


IN_PLACE = {
    "+=": "iadd",
    "-=": "isub",
    "*=": "imul",
    "/=": "itruediv",
    "//=": "ifloordiv",
    "%=": "imod",
    "**=": "ipow",
    "|=": "ior",
    "&=": "iand",
    "^=": "ixor",
    "<<=": "ilshift",
    ">>=": "irshift",
}
"""Functions of `operator`."""
MORE_BUILTINS = (all, any, bytes, dict, enumerate, filter, frozenset, list, map, max, min, reversed, set, sorted, sum)


def in_place(sign: str, left: Any, right: Any) -> Any:
    """Do what RestrictedPython makes of `left += right`."""
    return getattr(operator, IN_PLACE[sign])(left, right)


def run_restricted(job: dict[str, Any], functions: dict[str, Callable[..., Any]]) -> Any:
    """Run the code behind RestrictedPython's filter."""
    sys.path.insert(0, "/packages/restricted.zip")
    library: Any = import_module("RestrictedPython")
    guards: Any = import_module("RestrictedPython.Guards")
    access: Any = import_module("RestrictedPython.Eval")
    compiled = library.compile_restricted_exec(job["source"], filename=SOURCE)
    if compiled.errors:
        raise SyntaxError("; ".join(compiled.errors))
    names: dict[str, Any] = {
        "__name__": "code",
        "__metaclass__": type,
        "__builtins__": guards.safe_builtins | {item.__name__: item for item in (*MORE_BUILTINS, tuple, zip)},
        "_getattr_": guards.safer_getattr,
        "_getitem_": access.default_guarded_getitem,
        "_getiter_": access.default_guarded_getiter,
        "_inplacevar_": in_place,
        "_iter_unpack_sequence_": guards.guarded_iter_unpack_sequence,
        "_print_": Printer,
        "_unpack_sequence_": guards.guarded_unpack_sequence,
        "_write_": guards.full_write_guard,
        "ToolError": ToolError,
        "json": types.SimpleNamespace(dumps=json.dumps, loads=json.loads),
        "math": math,
        **functions,
    }
    exec(compiled.code, names)  # noqa: S102 - what this program is for; it runs in a jail only
    return names["main"](**job["arguments"])


PRELUDE = """
(() => {
  const ask = globalThis.__ask, say = globalThis.__say, names = JSON.parse(globalThis.__names);
  let state = globalThis.__seed >>> 0;
  for (const name of ["__ask", "__say", "__names", "__seed"]) delete globalThis[name];
  for (const name of names) globalThis[name] = (args = {}) => {
    if (Object(args) !== args || Array.isArray(args)) throw new TypeError(`${name} takes one object`);
    const answer = JSON.parse(ask(name, JSON.stringify(args)));
    if (answer.failure !== null) { const e = new Error(answer.failure); e.name = "ToolError"; throw e; }
    return answer.output;
  };
  const log = (...values) => say(values.map(v => typeof v === "string" ? v : JSON.stringify(v)).join(" "));
  globalThis.console = { log, info: log, warn: log, error: log, debug: log };
  Math.random = () => {  // mulberry32
    state = (state + 0x6D2B79F5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
})();
"""
CALL = """
(output => output instanceof Promise ? undefined : JSON.stringify(output) ?? "null")(
  main(JSON.parse(globalThis.__arguments)))
"""


def run_javascript(job: dict[str, Any], functions: dict[str, Callable[..., Any]]) -> Any:
    """Run JavaScript with QuickJS."""
    sys.path.insert(0, "/packages")
    quickjs: Any = import_module("_quickjs")

    def ask(name: str, arguments: str) -> str:
        try:
            return json.dumps({"output": functions[name](**json.loads(arguments)), "failure": None})
        except ToolError as failure:
            return json.dumps({"failure": str(failure)})

    context = quickjs.Context()
    context.set_memory_limit(job["memory_mb"] * 2**20 * 3 // 4)
    context.add_callable("__ask", ask)
    context.add_callable("__say", print)
    context.set("__names", json.dumps(list(functions)))
    context.set("__seed", random.getrandbits(31))
    context.eval(PRELUDE)
    context.set("__arguments", json.dumps(job["arguments"]))
    try:
        context.eval(job["source"])
        text = context.eval(CALL)
    except quickjs.JSException as failure:
        raise JavaScriptError(str(failure)) from None
    if text is None:
        raise TypeError("main returned a promise; write a plain function, tools are called without await")
    return json.loads(text)


JAVASCRIPT_LINE = re.compile(r"<input>:(\d+)")


class JavaScriptError(Exception):
    """JavaScript code has thrown."""


RUNNERS = {"cpython": run_python, "restricted": run_restricted, "quickjs": run_javascript}


def failure_of(problem: BaseException) -> dict[str, Any]:
    """A failure as a frame: of the code's own lines only, and without what its exception might do when it is shown."""
    line = problem.lineno if isinstance(problem, SyntaxError) else None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        message = str(problem)
    except BaseException:  # noqa: BLE001 - the exception is the code's own, and may do anything
        message = "its message cannot be shown"
    if isinstance(problem, JavaScriptError):
        name, _, message = message.partition(": ")
        place = JAVASCRIPT_LINE.search(message)
        line, message = int(place[1]) if place else None, message.partition("\n")[0]
    else:
        name = type(problem).__name__
    legible = message[:MOST_SAID].encode("utf-8", "replace").decode()
    return {"kind": "failed", "type": name, "message": legible, "line": line}


def limit(quotas: dict[str, int]) -> None:
    """Take this process and all that it starts under quotas, for good. The last second of CPU is for dying."""
    for name, value in quotas.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value + (name == "CPU")))


def main() -> None:
    """Run one job."""
    limit(json.loads(sys.argv[1]))
    channel = open_channel()
    job = channel.read()
    channel.largest = job["largest"]
    random.seed(job["seed"])
    functions = {name: function_of(channel, name) for name in job["functions"]}
    try:
        output = RUNNERS[job["dialect"]](job, functions)
        sys.stdout.flush()
        frame = {"kind": "returned", "output": output}
        try:
            channel.write(frame)
        except (TypeError, ValueError) as problem:
            raise TypeError(f"main returned a value that is not JSON: {problem}") from None
    except BaseException as problem:  # noqa: BLE001 - the edge of the process: whatever the code raises is told
        channel.write(failure_of(problem))
    os._exit(0)


if __name__ == "__main__":
    main()

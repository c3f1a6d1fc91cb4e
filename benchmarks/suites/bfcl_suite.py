"""BFCL's multi-turn tasks: objects with methods and a state, and the calls of each turn as Python text.

Runs in an environment that has it: `python -m benchmarks.suites.bfcl_suite [--only GROUP] [--limit N]`.
"""

import ast
import asyncio
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib import import_module, resources
from typing import Any

from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, STATELESS_CLASSES
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker, state_checker
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

from benchmarks.suites.playing import Played, Turn, play, play_again
from benchmarks.suites.running import Asked, asked
from benchmarks.suites.verdicts import Verdict
from toolcrib import FunctionTool, tools_of
from toolcrib.contracts import JsonObject, JsonSchema, ToolEnvelope

GROUPS = ("base", "miss_func", "miss_param", "long_context")
_NUMBER = re.compile(r"mpf\('([^']*)'\)")
"""How a number of mpmath writes itself, rounded."""
CONTROLS = 25
"""Tasks of a group that are played with a call left out."""


def read(path: str) -> list[dict[str, Any]]:
    """The entries of one of the suite's files of JSON lines."""
    text = resources.files("bfcl_eval").joinpath("data", path).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


class Task:
    """An entry of the suite with the calls that solve it."""

    def __init__(self, group: str, entry: dict[str, Any], truth: list[list[str]]) -> None:
        self.category = f"multi_turn_{group}"
        self.entry = entry
        self.truth = truth
        self.id: str = entry["id"]

    def objects(self) -> dict[str, Any]:
        """Fresh objects of the classes that it involves."""
        made: dict[str, Any] = {}
        for name in self.entry["involved_classes"]:
            made[name] = getattr(import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
            if name not in STATELESS_CLASSES:
                scenario = deepcopy(self.entry["initial_config"].get(name, {}))
                made[name]._load_scenario(  # noqa: SLF001 - so does the suite
                    scenario, long_context="long_context" in self.category
                )
        return made

    def turns(self, methods: Mapping[str, Callable[..., Any]]) -> list[Turn]:
        """What is said and called.

        Functions that are missed are offered from the turn on that brings them, or that calls them before: in one task
        the suite's own calls do.
        """
        brought: dict[str, list[str]] = self.entry.get("missed_function", {})
        missing = {name: int(turn) for turn, names in brought.items() for name in names}
        turns: list[Turn] = []
        for index, (said, texts) in enumerate(zip(self.entry["question"], self.truth, strict=True)):
            calls = [read_call(text, methods) for text in texts]
            called = {name for name, _ in calls}
            missing = {name: turn for name, turn in missing.items() if turn > index and name not in called}
            words = " ".join(message["content"] for message in said) or f"Now you have {brought[str(index)]}."
            turns.append(Turn(words, calls, hidden=frozenset(missing)))
        return turns


def read_call(text: str, methods: Mapping[str, Callable[..., Any]]) -> tuple[str, JsonObject]:
    """A call written in Python, as a name and arguments by name; nothing in it is executed."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        msg = f"{text!r} is no call of a function"
        raise TypeError(msg)
    positional = [ast.literal_eval(argument) for argument in call.args]
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    bound = inspect.signature(methods[call.func.id]).bind(*positional, **named)
    return call.func.id, dict(bound.arguments)


def written(envelope: ToolEnvelope) -> str:
    """A call that was made, as Python text."""
    return f"{envelope.name}({', '.join(f'{name}={value!r}' for name, value in envelope.input.items())})"


class Stage:
    """A task on objects of its own."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._objects = task.objects()
        self.methods: dict[str, Callable[..., Any]] = {}
        self.tools: list[FunctionTool[..., Any]] = []
        for thing in self._objects.values():
            for found in tools_of(thing):
                name, schema = found.definition.name, widened(found.definition.input_schema)
                self.tools += tools_of(thing, name, input_schema=schema, output_schema=None)
                self.methods[name] = getattr(thing, name)

    def accepts(self, played: Played, player: str) -> bool:
        """Whether the objects, the results and the calls are what the suite says.

        Args:
            played: What came of it.
            player: The suite keeps objects of its own by this name.
        """
        task, entry = self._task, self._task.entry
        results: list[str] = []
        theirs: dict[str, Any] = {}
        for calls in task.truth:
            found, theirs = execute_multi_turn_func_call(
                calls, entry["initial_config"], entry["involved_classes"], f"{player}_truth", entry["id"],
                long_context="long_context" in task.category,
            )  # fmt: skip
            results += found
        ours = [envelope for turn in played.turns for envelope in turn]
        if not state_checker(self._objects, theirs)["valid"] or len(ours) != len(results):
            return False
        if not all(same(envelope, result) for envelope, result in zip(ours, results, strict=True)):
            return False
        made = [[[written(envelope)] for envelope in turn] for turn in played.turns]
        return bool(multi_turn_checker(made, task.truth, entry, task.category, player)["valid"])


def widened(schema: JsonSchema) -> JsonSchema:
    """A schema that takes text for numbers too: the suite's own calls do not always keep to its type hints."""
    properties = {
        name: {**part, "type": [part["type"], "string"]} if part.get("type") in {"integer", "number"} else part
        for name, part in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def same(envelope: ToolEnvelope, result: str) -> bool:
    """Whether a call brought what the suite got, which writes everything as text."""
    if envelope.error is not None:
        return result.startswith("Error during execution")
    written_number = _NUMBER.search(result)
    if written_number:
        return math.isclose(envelope.output["result"], float(written_number[1]), rel_tol=1e-4)
    try:
        return envelope.output == json.loads(result)
    except json.JSONDecodeError:
        return str(envelope.output).replace(repr(str(...)), repr(...)) == result  # a list of theirs has `...` in it


async def run_group(group: str, limit: int | None) -> Verdict:
    """Play all tasks of a category."""
    truths = {entry["id"]: entry["ground_truth"] for entry in read(f"possible_answer/BFCL_v4_multi_turn_{group}.json")}
    verdict, names = Verdict(group), set[str]()
    for entry in read(f"BFCL_v4_multi_turn_{group}.json")[:limit]:
        task = Task(group, entry, truths[entry["id"]])
        stage, fresh = Stage(task), Stage(task)
        names |= stage.methods.keys()
        turns = task.turns(stage.methods)
        played = await play(stage.tools, turns)
        again = await play_again(fresh.tools, turns, played)
        live, repeated = stage.accepts(played, "live"), fresh.accepts(again, "again")
        verdict.count(task.id, turns, live=live, replayed=played.replayed, again=repeated)
        if verdict.controls < CONTROLS:
            verdict.controls += 1
            verdict.detected += not await _accepted_without_a_call(task)
    verdict.tools = len(names)
    return verdict


async def _accepted_without_a_call(task: Task) -> bool:
    """Whether the suite accepts the task when the last call is left out."""
    stage = Stage(task)
    turns = task.turns(stage.methods)
    last = max(index for index, turn in enumerate(turns) if turn.calls)
    turns[last] = Turn(turns[last].message, turns[last].calls[:-1], hidden=turns[last].hidden)
    return stage.accepts(await play(stage.tools, turns), "control")


async def main(wanted: Asked) -> None:
    """Print a verdict for each category."""
    for group in GROUPS:
        if wanted.group in (None, group):
            print((await run_group(group, wanted.limit)).line(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(asked()))

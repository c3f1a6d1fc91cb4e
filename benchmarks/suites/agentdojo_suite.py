"""AgentDojo: its tools take parts of an environment, its tasks know the calls that solve them, and judge themselves.

Runs in an environment that has it: `python -m benchmarks.suites.agentdojo_suite [--only GROUP] [--limit N]`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from agentdojo.base_tasks import BaseUserTask
from agentdojo.functions_runtime import Function, FunctionCall, FunctionsRuntime, TaskEnvironment
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import TaskSuite

from benchmarks.suites.playing import Played, Turn, play, play_again
from benchmarks.suites.running import Asked, asked
from benchmarks.suites.verdicts import Verdict
from toolcrib import FunctionTool, tool
from toolcrib.contracts import JsonObject

VERSION = "v1.2.2"
CONTROLS = 10
"""Tasks of a group that are played with a call left out."""


def tools_in(suite: TaskSuite, environment: TaskEnvironment) -> list[FunctionTool[..., Any]]:
    """The functions of a suite on an environment: what they depend on is held, so the model does not see it."""
    return [_tool(function, environment) for function in suite.tools]


def _tool(function: Function, environment: TaskEnvironment) -> FunctionTool[..., Any]:
    held = {name: part.extract_dep_from_env(environment) for name, part in function.dependencies.items()}
    return tool(sequential=True, output_schema=None)(partial(function.run, **held))


class Stage:
    """A task on an environment of its own."""

    def __init__(self, suite: TaskSuite, task: BaseUserTask) -> None:
        self._task = task
        self._tools = suite.tools
        self.environment = task.init_environment(suite.load_and_inject_default_environment({}))
        self._before = self.environment.model_copy(deep=True)
        self.tools = tools_in(suite, self.environment)
        truth = [(call.function, dict(call.args)) for call in task.ground_truth(self.environment)]
        self.turn = Turn(task.PROMPT, truth, task.GROUND_TRUTH_OUTPUT)

    def accepts(self, played: Played) -> bool:
        """What the task says of the state, of the last answer and of the calls."""
        calls = [(found.name, found.input) for turn in played.turns for found in turn if found.ok]
        return self._judge(calls, played.answers[-1])

    def refuses_natively(self, calls: Sequence[tuple[str, JsonObject]]) -> bool:
        """Whether the suite refuses these calls when its own runtime makes them on this environment."""
        runtime = FunctionsRuntime(self._tools)
        for name, arguments in calls:
            runtime.run_function(self.environment, name, arguments)
        return not self._judge(calls, self.turn.answer)

    def _judge(self, calls: Sequence[tuple[str, JsonObject]], answer: str) -> bool:
        made = [FunctionCall(function=name, args=arguments) for name, arguments in calls]
        by_calls = self._task.utility_from_traces(answer, self._before, self.environment, made)
        return self._task.utility(answer, self._before, self.environment) if by_calls is None else by_calls


async def run_group(name: str, suite: TaskSuite, limit: int | None) -> Verdict:
    """Play all tasks of a suite."""
    verdict = Verdict(name, tools=len(suite.tools))
    for task in list(suite.user_tasks.values())[:limit]:
        stage, fresh = Stage(suite, task), Stage(suite, task)
        turns = [stage.turn]
        played = await play(stage.tools, turns)
        again = await play_again(fresh.tools, turns, played)
        live, repeated = stage.accepts(played), fresh.accepts(again)
        verdict.count(task.ID, turns, live=live, replayed=played.replayed, again=repeated)
        if turns[0].calls and verdict.controls < CONTROLS:
            await _control(verdict, suite, task)
    return verdict


async def _control(verdict: Verdict, suite: TaskSuite, task: BaseUserTask) -> None:
    """Leave the last call out, where the suite itself sees that it is missing."""
    native, stage = Stage(suite, task), Stage(suite, task)
    less = Turn(stage.turn.message, stage.turn.calls[:-1], stage.turn.answer)
    if native.refuses_natively(less.calls):
        verdict.controls += 1
        verdict.detected += not stage.accepts(await play(stage.tools, [less]))


async def main(wanted: Asked) -> None:
    """Print a verdict for each suite."""
    for name, suite in get_suites(VERSION).items():
        if wanted.group in (None, name):
            print((await run_group(name, suite, wanted.limit)).line(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(asked()))

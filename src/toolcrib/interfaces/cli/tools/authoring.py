"""`toolcrib tool prompt`, `render-prompt`, `test-prompt` and others: prompts of agentic tools."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from toolcrib.interfaces.cli.render.console import money
from toolcrib.interfaces.cli.render.tables import print_revisions
from toolcrib.interfaces.cli.support.commands import prints, says, shows
from toolcrib.interfaces.cli.support.inputs import text_of
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, tool_names, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import (
        JsonObject,
        PromptDifference,
        PromptRevision,
        PromptTest,
        TextProposal,
        ToolDefinition,
        ToolRevision,
    )
    from toolcrib.contracts.tools.rendered_prompts import RenderedPrompt
    from toolcrib.crib import Crib

ToolName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The tool's name.", show_default=False, autocompletion=tool_names),
]
Task = Annotated[str, typer.Argument(metavar="TASK", help="A sample task, or a JSON object of parameters.")]
ByModel = Annotated[bool, typer.Option("--by-model", help="Have the tool's own model write it, which costs.")]
Description = Annotated[bool, typer.Option("--description", help="The text for parent agents instead of the prompt.")]
Accept = Annotated[bool, typer.Option("--accept", help="Store the proposal as a new revision.")]
PromptFile = Annotated[
    Path | None, typer.Option("--prompt", metavar="FILE", help="Try this prompt instead.", show_default=False)
]
OtherModel = Annotated[
    str | None, typer.Option("--model", metavar="REF", help="Try this model instead.", show_default=False)
]
Compare = Annotated[
    tuple[int, int] | None,
    typer.Option("--compare", metavar="OLDER NEWER", help="The difference of two revisions.", show_default=False),
]
Number = Annotated[int, typer.Argument(metavar="REVISION", help="Number of the older revision.")]


@says("{found.system_prompt}")
async def prompt(crib: "Crib", name: ToolName) -> "PromptRevision":
    """Print the system prompt of an agentic tool."""
    return next(entry for entry in await crib.prompts.history(name) if entry.current)


def _print_proposal(found: "tuple[TextProposal, bool]") -> None:
    proposal, stored = found
    print(proposal.diff or f"the {proposal.text} stays as it is")
    print(f"\nreason: {proposal.reason}")
    if proposal.diff:
        print("stored as a new revision" if stored else "nothing is stored; add --accept to store it")


@shows(_print_proposal, data=lambda found: found[0])
async def regenerate(
    crib: "Crib", name: ToolName, *, by_model: ByModel = False, description: Description = False, accept: Accept = False
) -> "tuple[TextProposal, bool]":
    """Propose a new prompt or description for a tool.

    It is stored with --accept only.
    """
    make = crib.prompts.describe if description else crib.prompts.regenerate
    proposal = await make(name, source="model" if by_model else "generator")
    if accept and proposal.diff:
        await crib.prompts.accept(proposal)
    return proposal, accept


def _print_test(found: "PromptTest") -> None:
    print(found.system_prompt or "")
    print(f"\nanswer: {json.dumps(found.answer, indent=2, ensure_ascii=False)}")
    for call in found.calls:
        print(f"call: {call.tool} {'skipped' if call.skipped else json.dumps(call.input, ensure_ascii=False)}")
    for problem in found.problems:
        print(f"problem: {problem}")
    print(f"tokens: {found.usage.total_tokens}, cost: {money(found.cost_usd)}")


@prints(_print_test, fails=lambda found: not found.ok)
def try_prompt(
    name: ToolName,
    task: Task,
    *,
    prompt_file: PromptFile = None,
    model: OtherModel = None,
    store: Store = DEFAULT_STORE,
) -> "PromptTest":
    """Show what a tool's model would do with a sample task.

    No tool is called.
    """
    text = text_of(prompt_file) if prompt_file is not None else None
    arguments = _sample(task)

    async def run(crib: "Crib") -> "PromptTest":
        return await crib.prompts.test(await _definition(crib, name, text, model), arguments)

    return with_crib(store, run)


def _print_rendered(found: "RenderedPrompt") -> None:
    if found.prompt is not None:
        print(found.prompt.system)
        tokens = found.prompt.tokens
        print(f"\ntools: {', '.join(tool.name for tool in found.prompt.tools) or 'none'}")
        print(f"tokens: {tokens.total} (system {tokens.system}, messages {tokens.messages}, tools {tokens.tools})")
        print(f"counted by {tokens.method}; input costs: {money(found.prompt.input_cost_usd)}")
    for problem in found.problems:
        print(f"problem: {problem}")


@prints(_print_rendered, fails=lambda found: found.prompt is None)
def render_prompt(
    name: ToolName,
    task: Task,
    *,
    prompt_file: PromptFile = None,
    model: OtherModel = None,
    store: Store = DEFAULT_STORE,
) -> "RenderedPrompt":
    """Show the first request of a tool to its model.

    No model is asked.
    """
    text = text_of(prompt_file) if prompt_file is not None else None
    arguments = _sample(task)

    async def run(crib: "Crib") -> "RenderedPrompt":
        return await crib.prompts.render(await _definition(crib, name, text, model), arguments)

    return with_crib(store, run)


def _print_revisions(found: "PromptDifference | Sequence[PromptRevision]") -> None:
    if isinstance(found, Sequence):
        print_revisions(found)
    else:
        print(found.diff or "the prompts are equal")


@shows(_print_revisions)
async def revisions(
    crib: "Crib", name: ToolName, compare: Compare = None
) -> "PromptDifference | Sequence[PromptRevision]":
    """List or compare the revisions of an agentic tool."""
    if compare is not None:
        return await crib.prompts.compare(name, *compare)
    return await crib.prompts.history(name)


@says("revision {revision} of {name} is now {found.revision}")
async def revert(crib: "Crib", name: ToolName, revision: Number) -> "ToolRevision":
    """Make an older revision of a tool current again."""
    return await crib.prompts.roll_back(name, revision)


async def _definition(crib: "Crib", name: str, prompt: str | None, model: str | None) -> "ToolDefinition":
    await crib.authorize()
    return _with_changes(crib.registry.require(crib.principal.realm, name).definition, prompt, model)


def _with_changes(definition: "ToolDefinition", prompt: str | None, model: str | None) -> "ToolDefinition":
    from toolcrib.contracts import AgenticImplementation, LLMConfig

    implementation = definition.implementation
    if not isinstance(implementation, AgenticImplementation):
        return definition
    changes = {
        "system_prompt": implementation.system_prompt if prompt is None else prompt,
        "llm": implementation.llm if model is None else LLMConfig(model=model),
    }
    return definition.model_copy(update={"implementation": implementation.model_copy(update=changes)})


def _sample(task: str) -> "JsonObject":
    if not task.lstrip().startswith("{"):
        return {"task": task}
    try:
        return cast("JsonObject", json.loads(task))
    except json.JSONDecodeError as problem:
        raise typer.BadParameter(f"the sample is not JSON: {problem}") from None

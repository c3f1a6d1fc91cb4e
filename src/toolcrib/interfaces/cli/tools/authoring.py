"""`toolcrib tool show`, `prompt`, `regenerate`, `test-prompt`, `revisions`, `roll-back`: an author at a terminal."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib

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
    from toolcrib.crib import Crib

ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.", show_default=False)]
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


def show(name: ToolName, store: Store = DEFAULT_STORE) -> None:
    """Print a tool's definition as JSON, in the revision that a call gets."""
    print(_find_tool(store, name).model_dump_json(indent=2))


def prompt(name: ToolName, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Print the system prompt of an agentic tool."""

    async def read(crib: "Crib") -> "PromptRevision":
        return next(entry for entry in await crib.prompts.history(name) if entry.current)

    found = with_crib(store, read)
    print(found.model_dump_json(indent=2) if as_json else found.system_prompt)


def regenerate(
    name: ToolName,
    *,
    by_model: ByModel = False,
    description: Description = False,
    accept: Accept = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Propose a prompt, or a description, for the tool as it is now; with --accept, store it."""

    async def propose(crib: "Crib") -> "TextProposal":
        make = crib.prompts.describe if description else crib.prompts.regenerate
        proposal = await make(name, source="model" if by_model else "generator")
        if accept and proposal.diff:
            await crib.prompts.accept(proposal)
        return proposal

    found = with_crib(store, propose)
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    print(found.diff or f"{found.text} of {name} stays as it is")
    print(f"\nreason: {found.reason}")
    if found.diff:
        print("stored as a new revision" if accept else "nothing is stored; add --accept to store it")


def try_prompt(
    name: ToolName,
    task: Task,
    *,
    prompt_file: PromptFile = None,
    model: OtherModel = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Give the tool's model a sample task, and print what it would do first. No tool is called."""
    text = _text(prompt_file) if prompt_file is not None else None
    arguments = _sample(task)

    async def run(crib: "Crib") -> "PromptTest":
        await crib.authorize()
        definition = crib.registry.require(crib.principal.realm, name).definition
        return await crib.prompts.test(_with_changes(definition, text, model), arguments)

    found = with_crib(store, run)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        from toolcrib.interfaces.cli.render.console import money

        print(found.system_prompt or "")
        print(f"\nanswer: {json.dumps(found.answer, indent=2, ensure_ascii=False)}")
        for call in found.calls:
            print(f"call: {call.tool} {'skipped' if call.skipped else json.dumps(call.input, ensure_ascii=False)}")
        for problem in found.problems:
            print(f"problem: {problem}")
        print(f"tokens: {found.usage.total_tokens}, cost: {money(found.cost_usd)}")
    if not found.ok:
        raise typer.Exit(1)


def revisions(name: ToolName, compare: Compare = None, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the revisions of an agentic tool, or compare the prompts of two."""
    if compare is not None:
        older, newer = compare

        async def differ(crib: "Crib") -> "PromptDifference":
            return await crib.prompts.compare(name, older, newer)

        difference = with_crib(store, differ)
        print(difference.model_dump_json(indent=2) if as_json else difference.diff or "the prompts are equal")
        return

    async def read(crib: "Crib") -> "list[PromptRevision]":
        return list(await crib.prompts.history(name))

    found = with_crib(store, read)
    if as_json:
        print(json.dumps([entry.model_dump(mode="json") for entry in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_revisions

    print_revisions(found)


def roll_back(name: ToolName, revision: Number, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Make an older revision of a tool the current one again."""

    async def go_back(crib: "Crib") -> "ToolRevision":
        return await crib.prompts.roll_back(name, revision)

    saved = with_crib(store, go_back)
    print(saved.model_dump_json(indent=2) if as_json else f"revision {revision} of {name} is now {saved.revision}")


def _find_tool(store: str | None, name: str) -> "ToolRevision":
    async def read(crib: "Crib") -> "ToolRevision":
        return crib.registry.require(crib.principal.realm, name)

    return with_crib(store, read)


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


def _text(file: Path) -> str:
    from toolcrib.contracts import InvalidInput

    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        msg = f"{file} cannot be read: {problem.strerror}"
        raise InvalidInput(msg) from problem

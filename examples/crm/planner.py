"""A model made of rules: it plans changes of a deal's stage, so that the demonstration runs without an API key.

It knows a small grammar of tasks and the shape of two operations, and nothing about the data: the company comes from
the task, the stage's id from the labels in the schema that it is asked to fill in, every number of its report from the
facts that it is given. Wherever a model's name is shown, this one is called `scripted:crm-planner`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolcrib import ScriptedModel
from toolcrib.llm import Request

NAME = "crm-planner"

_VERB = r"(?:please\s+)?(?:update|move|set|change|put|advance|transfer|shift)"
_GOAL = r"(?:to|into|in)\s+(?:the\s+)?(?:stage\s+)?"
_ALL = r"(?:the\s+stage\s+of\s+)?(?:(?:all|every|each)\s+)?(?:of\s+)?(?:the\s+)?"
_WORDINGS = (
    rf"{_VERB}\s+{_ALL}deals?\s+(?:of|for|from|with|at)\s+(?P<company>.+?)\s+{_GOAL}(?P<stage>.+)",
    rf"{_VERB}\s+{_ALL}(?P<company>.+?)(?:['\u2019]s?)?\s+deals?\s+{_GOAL}(?P<stage>.+)",
)
_NOBODY = frozenset({"all", "every", "each", "the", "all the", "my", "our", "these", "those"})
"""What stands before `deals` where a task names no company."""
_TASK = re.compile(r"^Task: (.*?)\n(?:Today is [^\n]*\n)?\n", re.DOTALL | re.MULTILINE)
_POINT = re.compile(r"^([vw])(\d+): (.*)$", re.MULTILINE)
"""A point of a second reading: a value of the plan, or words of the task."""
_FACTS = re.compile(r"^Facts of the steps that ran: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StageChange:
    """What a task asks for: all deals of a company to a stage."""

    company: str
    stage: str
    """What the task calls the stage: its label or its id."""


def planner() -> ScriptedModel:
    """The model."""
    return ScriptedModel(answer, name=NAME)


def answer(request: Request) -> str:
    """What the model says: a plan where one is asked for, what it holds of one that was made, else a report."""
    text = request.messages[0].text
    found = _TASK.search(text)
    change = read_task(found[1] if found else text)
    if request.output_name == "plan":
        return json.dumps(_plan(found[1] if found else text, change, dict(_labels(request.output_schema))))
    if request.output_name == "check":
        return json.dumps(_second_reading(change, text))
    facts = _FACTS.search(text)
    return json.dumps(_report(change, _read(facts[1]) if facts else {}))


def read_task(task: str) -> StageChange | None:
    """The change that a task asks for, or null if it is worded in another way than the planner knows."""
    text = " ".join(task.split()).rstrip(".! ")
    for wording in _WORDINGS:
        found = re.fullmatch(wording, text, re.IGNORECASE)
        if found:
            stage = re.sub(r"\s+stage$", "", found["stage"], flags=re.IGNORECASE)
            company = _unquoted(found["company"])
            return None if company.lower() in _NOBODY else StageChange(company, _unquoted(stage))
    return None


def _plan(task: str, change: StageChange | None, labels: Mapping[str, str]) -> dict[str, Any]:
    if change is None:
        return _question("I can move all deals of one company to a stage: 'Update all COMPANY deals to STAGE'.", labels)
    wanted = change.stage.casefold()
    stages = [value for value, label in labels.items() if wanted in {label.casefold(), value.casefold()}]
    if len(stages) != 1:
        problem = "is not a stage" if not stages else f"is the name of {len(stages)} stages; say which by its id"
        return _question(f"{change.stage!r} {problem}.", labels)
    company = {"property": "company_name", "operator": "EQ", "value": change.company}
    return {
        "reading": _reading(task, change),
        "reasoning": f"Find every deal of {change.company}, then set the stage of each to {labels[stages[0]]}.",
        "search_deals": {"input": {"filter_groups": [{"filters": [company]}], "properties": ["name", "stage"]}},
        "batch_update_deals": {
            "for_each": "${search_deals.results}",
            "input": {"inputs": [{"id": "${item.id}", "properties": {"stage": stages[0]}}]},
        },
    }


def _reading(task: str, change: StageChange) -> list[dict[str, Any]]:
    """The task part by part: the company selects, the stage is set, and the rest is the request."""
    parts: list[dict[str, Any]] = []
    said = {change.company: "condition", change.stage: "change"}
    for part in re.split("|".join(f"({re.escape(words)})" for words in said), task):
        if part and part.strip():
            use = said.get(part)
            parts.append(
                {"words": part.strip(), "use": use, "value": part} if use else {"words": part, "use": "request"}
            )
    return parts


def _second_reading(change: StageChange | None, text: str) -> dict[str, Any]:
    """What the task says of each point: its company selects, its stage is set, and there is nothing else in it."""
    answers: dict[str, Any] = {}
    for kind, number, asked in _POINT.findall(text):
        if kind == "w":
            answers[f"w{number}"] = {"says": "nothing"}
            continue
        words = "" if change is None else _words_for(change, asked)
        answers[f"v{number}"] = {"words": words, "stated": "yes" if words else "no"}
    return answers


def _words_for(change: StageChange, asked: str) -> str:
    """The words of the task that say what a point asks; empty if none do."""
    question = asked.partition("?")[0]
    if question.endswith(f"only items with company_name EQ {change.company!r} are meant"):
        return change.company
    return change.stage if f" stage is to be {change.stage!r}".casefold() in question.casefold() else ""


def _question(problem: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A plan that does nothing but ask."""
    valid = ", ".join(f"{label} ({value})" for value, label in labels.items())
    return {
        "reasoning": "The task cannot be planned as it is worded.",
        "question": f"{problem} The stages are: {valid}.",
        "search_deals": {"skip": True},
        "batch_update_deals": {"skip": True},
    }


def _report(change: StageChange | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What was done, in the numbers of the facts and no others; facts that arrived cut off give lower bounds."""
    found, update = facts.get("search_deals"), facts.get("batch_update_deals")
    company, stage = (change.company, change.stage) if change else ("the company", "the stage")
    if found is None or update is None:
        return {"summary": f"The facts do not tell what became of the deals of {company}.", "deals_affected": None}
    outputs: list[Any] = update["output"] or []
    batches = [cast("dict[str, Any]", batch) for batch in outputs if isinstance(batch, dict)]
    moved, there = (sum(batch[name] for batch in batches) for name in ("updated", "unchanged"))
    at_least = "at least " if any(isinstance(batch, str) for batch in outputs) else ""
    summary = f"Moved {at_least}{moved} of the {found['output']['total']} deals of {company} to {stage}"
    if there:
        summary += f"; {at_least}{there} were there already"
    if "failed" in update:
        summary += f"; {update['failed']} of {update['calls']} updates failed: {update['first_error']}"
    return {"summary": f"{summary}.", "deals_affected": moved}


def _labels(schema: Any) -> Iterator[tuple[str, str]]:
    """Ids and labels of the stages: an enum in the schema that is to be filled in, described as `id = label; …`."""
    for node in _nodes(schema):
        described = str(node.get("description", "")).partition("One of: ")[2]
        labels = dict(entry.split(" = ", 1) for entry in described.split("; ") if " = " in entry)
        yield from ((value, labels[value]) for value in node.get("enum", ()) if value in labels)


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a JSON value, at any depth."""
    if isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        yield node
        value = list(node.values())
    if isinstance(value, list):
        items = cast("list[Any]", cast("Any", value))
        for item in items:
            yield from _nodes(item)


def _read(text: str) -> Mapping[str, Any]:
    """The facts, as far as they are whole: long ones arrive cut off."""
    try:
        facts: Mapping[str, Any] = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return facts


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'\u201c\u201d\u2018\u2019").strip()

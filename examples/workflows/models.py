"""What the models of the gallery say: scripts, so that every scenario comes out the same."""

import json

from toolcrib import ScriptedModel
from toolcrib.contracts import JsonObject
from toolcrib.llm import Message, Request, ToolCall, ToolResult

FIRST_DRAFT: JsonObject = {
    "name": "weekly-greeting",
    "description": "Says welcome to a list of people.",
    "input_schema": {
        "type": "object",
        "properties": {"people": {"type": "array", "items": {"type": "string"}}},
        "required": ["people"],
    },
    "steps": [
        {
            "name": "greet",
            "tool": "people.welcom",
            "for_each": "${input.people}",
            "input": {"person": "${item}", "accounts": []},
        }
    ],
    "output": "${greet[*].text}",
}
"""What the authoring agent writes first: the name of the tool is wrong."""


def scripts() -> dict[str, ScriptedModel]:
    """The models by reference."""
    return {
        "scripted:exceptions": ScriptedModel(_decide_on_exception),
        "scripted:triage": ScriptedModel(_classify),
        "scripted:market": ScriptedModel(_research),
        "scripted:author": ScriptedModel(_author),
        "scripted:clerk": ScriptedModel(_clerk),
        "scripted:planner": ScriptedModel(_plan),
    }


def results_of(request: Request) -> list[str]:
    """What the calls of a conversation have brought so far."""
    parts = (part for message in request.messages for part in message.parts)
    return [part.text for part in parts if isinstance(part, ToolResult)]


def calling(number: int, *calls: tuple[str, JsonObject]) -> Message:
    """An answer that calls tools."""
    parts = (ToolCall(f"call_{number}_{at}", name, json.dumps(given)) for at, (name, given) in enumerate(calls))
    return Message("assistant", tuple(parts))


def _decide_on_exception(request: Request) -> Message | str:
    """Looks the address up; if there is one, the order can be shipped."""
    found = results_of(request)
    if not found:
        return calling(0, ("shop.find_address", {"order_id": _order_in(request.messages[-1].text)}))
    return json.dumps({"resolution": "ship" if "1010" in found[0] else "cancel"})


def _order_in(text: str) -> str:
    return text.partition("Order ")[2].partition(" ")[0]


def _classify(request: Request) -> str:
    """Says what a message is about."""
    text = request.messages[-1].text
    topic = "billing" if "invoice" in text else "technical" if "crash" in text else "praise"
    return json.dumps({"topic": topic})


def _research(request: Request) -> Message | str:
    """Looks up prices, and never the weather."""
    if not results_of(request):
        return calling(0, ("market.prices", {"what": "bolts"}))
    return "Bolts are up."


def _author(request: Request) -> Message | str:
    """Writes a draft, reads what is wrong with it, and corrects that."""
    found = results_of(request)
    if not found:
        return calling(0, ("save_workflow_draft", {"definition": FIRST_DRAFT}))
    if len(found) == 1 and "people.welcome" in found[0]:
        (step,) = FIRST_DRAFT["steps"]
        corrected = {**FIRST_DRAFT, "steps": [{**step, "tool": "people.welcome"}]}
        return calling(1, ("save_workflow_draft", {"definition": corrected}))
    return f"The draft is saved. {found[-1]}"


def _clerk(request: Request) -> Message | str:
    """Starts the workflow that it has as a tool."""
    found = results_of(request)
    if not found:
        return calling(0, ("execute_fulfillment_workflow", {"orderIds": ["A1", "A2"]}))
    return "Both orders are on their way."


def _plan(request: Request) -> str:
    """Plans the steps of the deal tool, and puts into words what they have brought."""
    if request.output_name == "answer":
        return json.dumps({"summary": "Two deals of Acme are in Negotiation now."})
    plan: JsonObject = {
        "reading": [
            {"words": "Update all", "use": "request"},
            {"words": "Acme", "use": "condition", "value": "Acme"},
            {"words": "deals", "use": "request"},
            {"words": "to Negotiation", "use": "change", "value": "Negotiation"},
        ],
        "reasoning": "All deals of Acme, whatever their stage.",
        "question": None,
        "search": {"skip": False, "input": {"company": "Acme"}},
        "update": {
            "skip": False,
            "for_each": "${search.ids}",
            "input": {"deal": "${item}", "stage": "Negotiation"},
        },
    }
    return json.dumps(plan)

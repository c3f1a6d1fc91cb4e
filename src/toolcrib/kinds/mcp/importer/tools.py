"""One offer of a server as one tool definition."""

import re
from typing import Final, cast

from toolcrib.contracts import Json, JsonObject, JsonSchema, McpImplementation, SideEffects, ToolDefinition
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.mcp.importer.offers import Offer
from toolcrib.kinds.mcp.importer.prose import MAX_DESCRIPTION, MAX_TITLE, prose, visible
from toolcrib.kinds.mcp.importer.schemas import input_schema, output_schema, text_arguments

_EXPRESSION: Final = re.compile(r"\{[+#./;?&]?([^{}]*)\}")
"""RFC 6570, section 2.2."""
_VARIABLE: Final = re.compile(r"[A-Za-z0-9_.%]+")


def make_tool(offer: Offer, name: str, provider: str, losses: Losses) -> ToolDefinition:
    """The tool of an offer; what it does not say as the server said it is a loss.

    Raises:
        ValueError: It cannot be one, as pydantic's validation says.
    """
    fields: JsonObject = {
        "name": name,
        "title": _title(offer, losses),
        "description": _description(offer, losses),
        "category": provider,
        "tags": (offer.capability,),
        "source": "imported",
        "implementation": McpImplementation(
            provider=provider, capability=offer.capability, name=offer.name, fingerprint=dict(offer.fingerprint)
        ),
    }
    match offer.list_name:
        case "tools":
            fields |= _tool(offer)
        case "prompts":
            fields |= {**_reads(), "input_schema": _prompt_arguments(offer)}
        case "resourceTemplates":
            fields |= {**_reads(), "input_schema": text_arguments(dict.fromkeys(variables(offer.name), True), {})}
        case _:
            fields |= {**_reads(), "input_schema": text_arguments({}, {})}
    return ToolDefinition(**fields)


def variables(template: str) -> tuple[str, ...]:
    """The names of the variables in a URI template, each once."""
    found = (name for part in _EXPRESSION.findall(template) for name in part.split(","))
    names = (match[0] for name in found if (match := _VARIABLE.match(name)) is not None)
    return tuple(dict.fromkeys(names))


def _reads() -> JsonObject:
    return {"side_effects": "reads", "idempotent": True}


def _tool(offer: Offer) -> JsonObject:
    """What the server says of a tool, its hints (ToolAnnotations) included, which are claims.

    Without hints a tool is taken to write, as the specification has it.
    """
    hints = _object(offer.said.get("annotations"))
    reads = hints.get("readOnlyHint") is True
    effects: SideEffects = "reads" if reads else "writes"
    destroys = hints.get("destructiveHint")
    return {
        "side_effects": effects,
        "deletes": destroys if isinstance(destroys, bool) and not reads else None,
        "idempotent": reads or hints.get("idempotentHint") is True,
        "input_schema": input_schema(offer.said.get("inputSchema")),
        "output_schema": output_schema(offer.said.get("outputSchema")),
    }


def _title(offer: Offer, losses: Losses) -> str | None:
    hint = _object(offer.said.get("annotations")).get("title")
    title = offer.text("title") or (hint if isinstance(hint, str) else "")
    if not title and offer.capability == "resource":
        title = offer.text("name")
    return prose(title, MAX_TITLE, offer.place, "title", losses) or None


def _description(offer: Offer, losses: Losses) -> str:
    said = prose(offer.text("description"), MAX_DESCRIPTION, offer.place, "description", losses)
    if offer.capability == "resource":
        return "\n".join(filter(None, [said, f"Reads {visible(offer.name)}."]))
    return said


def _prompt_arguments(offer: Offer) -> JsonSchema:
    given = offer.said.get("arguments")
    entries = [_object(entry) for entry in cast("list[Json]", given)] if isinstance(given, list) else []
    named = [entry for entry in entries if isinstance(entry.get("name"), str)]
    described = {entry["name"]: visible(str(entry.get("description") or "")) for entry in named}
    return text_arguments({entry["name"]: entry.get("required") is True for entry in named}, described)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}

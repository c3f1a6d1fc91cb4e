"""One offer of a server as one tool definition.

A server's words made fit to be shown: bounded, and without characters that show nothing.

Characters of control and format hide text from whoever reads a description and not from the model that is given it.
What the words say is not judged here: they stay claims of the other side.

Schemas as servers send them, in the dialect that everything else reads: JSON Schema 2020-12.

Most servers write draft 7 (`"$schema": "http://json-schema.org/draft-07/schema#"`), which differs for what occurs in
schemas of arguments only in how it writes tuples. Nothing is fetched: a schema that refers elsewhere is refused where
the definition is checked.
"""

import re
import unicodedata
from typing import Final, cast

from toolcrib.contracts import Json, JsonObject, JsonSchema, SideEffects, ToolDefinition
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.mcp.importer.offers import ServerOffer
from toolcrib.kinds.mcp.shape import McpImplementation

MAX_DESCRIPTION: Final = 4_000
"""Characters of a description that a model sees."""
MAX_TITLE: Final = 100

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format, private use, surrogate, separators of lines and paragraphs."""
_PROSE: Final = frozenset({"title", "description"})
_MOST_LEVELS: Final = 100


def prose(text: str, limit: int, place: str, what: str, losses: Losses) -> str:
    """A text without hidden characters, at most `limit` characters long; what goes is a loss."""
    shown = visible(text)
    if shown != text:
        losses.add_changed(place, "text", what, "characters that show nothing were taken out")
    if len(shown) <= limit:
        return shown.strip()
    losses.add_changed(place, "text", what, f"cut to {limit} characters")
    return shown[: limit - 1].rstrip() + "…"


def visible(text: str) -> str:
    """A text without the characters that show nothing, but for line breaks and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in _HIDDEN)


def legible_schema(schema: JsonSchema) -> JsonSchema:
    """A schema whose titles and descriptions show all of their characters; the rest of it is not touched."""
    return cast("JsonSchema", _legible(schema, _MOST_LEVELS))


def _legible(value: Json, levels: int) -> Json:
    if levels == 0:
        return value
    if isinstance(value, list):
        return [_legible(item, levels - 1) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("JsonObject", value)
    return {
        name: visible(item) if name in _PROSE and isinstance(item, str) else _legible(item, levels - 1)
        for name, item in members.items()
    }


def input_schema(said: Json) -> JsonSchema:
    """The schema of a tool's arguments: an object, without arguments if the server gives none."""
    schema = cast("JsonSchema", said) if isinstance(said, dict) else JsonSchema()
    return {"type": "object", **_modern(schema)}


def output_schema(said: Json) -> JsonSchema | None:
    """The schema of a tool's structured output; null if the server promises none."""
    return _modern(cast("JsonSchema", said)) if isinstance(said, dict) else None


def text_arguments(names: dict[str, bool], described: dict[str, str]) -> JsonSchema:
    """The schema of arguments that are texts, as those of prompts and templates are.

    Args:
        names: Whether each is required.
        described: What some of them mean.
    """
    properties = {
        name: {"type": "string", **({"description": described[name]} if described.get(name) else {})} for name in names
    }
    required = [name for name, is_required in names.items() if is_required]
    schema: JsonSchema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _modern(schema: JsonSchema) -> JsonSchema:
    shown = legible_schema(schema)
    return cast("JsonSchema", _tuples(shown, _MOST_LEVELS))


def _tuples(value: Json, levels: int) -> Json:
    """`items` as a list (draft 7) becomes `prefixItems`, and its `additionalItems` becomes `items`."""
    if levels == 0:
        return value
    if isinstance(value, list):
        return [_tuples(item, levels - 1) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    members = {name: _tuples(item, levels - 1) for name, item in cast("JsonObject", value).items() if name != "$schema"}
    if isinstance(members.get("items"), list):
        members["prefixItems"] = members.pop("items")
        if "additionalItems" in members:
            members["items"] = members.pop("additionalItems")
    return members


_EXPRESSION: Final = re.compile(r"\{[+#./;?&]?([^{}]*)\}")
"""RFC 6570, section 2.2."""
_VARIABLE: Final = re.compile(r"[A-Za-z0-9_.%]+")


def make_tool(offer: ServerOffer, name: str, provider: str, losses: Losses) -> ToolDefinition:
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


def _tool(offer: ServerOffer) -> JsonObject:
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


def _title(offer: ServerOffer, losses: Losses) -> str | None:
    hint = _object(offer.said.get("annotations")).get("title")
    title = offer.text("title") or (hint if isinstance(hint, str) else "")
    if not title and offer.capability == "resource":
        title = offer.text("name")
    return prose(title, MAX_TITLE, offer.place, "title", losses) or None


def _description(offer: ServerOffer, losses: Losses) -> str:
    said = prose(offer.text("description"), MAX_DESCRIPTION, offer.place, "description", losses)
    if offer.capability == "resource":
        return "\n".join(filter(None, [said, f"Reads {visible(offer.name)}."]))
    return said


def _prompt_arguments(offer: ServerOffer) -> JsonSchema:
    given = offer.said.get("arguments")
    entries = [_object(entry) for entry in cast("list[Json]", given)] if isinstance(given, list) else []
    named = [entry for entry in entries if isinstance(entry.get("name"), str)]
    described = {entry["name"]: visible(str(entry.get("description") or "")) for entry in named}
    return text_arguments({entry["name"]: entry.get("required") is True for entry in named}, described)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}

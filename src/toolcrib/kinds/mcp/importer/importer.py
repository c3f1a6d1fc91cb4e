"""The lists of an MCP server as tools of a provider: `import_mcp`, a pure function.

The caller lists the server's entries and stores the result. An entry that cannot become a tool is left out and
reported; the others are imported. Names of tools are valid for every model provider, unique, and stable. A name with
characters other than ASCII letters, digits, `_` and `-` gets a hash of its original spelling, so it cannot imitate
another name.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast

from pydantic import ValidationError

from toolcrib.contracts import (
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    LossReport,
    OperationImport,
    ProviderDefinition,
    SideEffects,
    ToolDefinition,
    content_hash,
)
from toolcrib.core.providers.imports import MAX_NAME, Group, ImportedApi, Losses, fitting, tell_large_input, with_hash
from toolcrib.core.registry import check_definition
from toolcrib.kinds.mcp.importer.offers import ServerListing, ServerOffer, Unusable
from toolcrib.kinds.mcp.shape import McpCapability, McpImplementation

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


def input_schema(source: Json) -> JsonSchema:
    """The schema of a tool's arguments: an object, without arguments if the server gives none."""
    schema = cast("JsonSchema", source) if isinstance(source, dict) else JsonSchema()
    return {"type": "object", **_modern(schema)}


def output_schema(source: Json) -> JsonSchema | None:
    """The schema of a tool's structured output; null if the server promises none."""
    return _modern(cast("JsonSchema", source)) if isinstance(source, dict) else None


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
    """The tool of an offer; differences from what the server said are losses.

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
            fields |= _tool_definition(offer)
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


def _tool_definition(offer: ServerOffer) -> JsonObject:
    """What the server says of a tool, its hints (ToolAnnotations) included, which are claims.

    Without hints a tool is taken to write, as the specification has it.
    """
    hints = _object(offer.document.get("annotations"))
    reads = hints.get("readOnlyHint") is True
    effects: SideEffects = "reads" if reads else "writes"
    destroys = hints.get("destructiveHint")
    return {
        "side_effects": effects,
        "deletes": destroys if isinstance(destroys, bool) and not reads else None,
        "idempotent": reads or hints.get("idempotentHint") is True,
        "input_schema": input_schema(offer.document.get("inputSchema")),
        "output_schema": output_schema(offer.document.get("outputSchema")),
    }


def _title(offer: ServerOffer, losses: Losses) -> str | None:
    hint = _object(offer.document.get("annotations")).get("title")
    title = offer.text("title") or (hint if isinstance(hint, str) else "")
    if not title and offer.capability == "resource":
        title = offer.text("name")
    return prose(title, MAX_TITLE, offer.place, "title", losses) or None


def _description(offer: ServerOffer, losses: Losses) -> str:
    text = prose(offer.text("description"), MAX_DESCRIPTION, offer.place, "description", losses)
    if offer.capability == "resource":
        return "\n".join(filter(None, [text, f"Reads {visible(offer.name)}."]))
    return text


def _prompt_arguments(offer: ServerOffer) -> JsonSchema:
    given = offer.document.get("arguments")
    entries = [_object(entry) for entry in cast("list[Json]", given)] if isinstance(given, list) else []
    named = [entry for entry in entries if isinstance(entry.get("name"), str)]
    described = {entry["name"]: visible(str(entry.get("description") or "")) for entry in named}
    return text_arguments({entry["name"]: entry.get("required") is True for entry in named}, described)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


_LEGAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN: Final = re.compile(r"[ -~]*")
_PREFIXES: Final[Mapping[McpCapability, str]] = {"tool": "", "resource": "read_", "prompt": "prompt_"}


def tool_names(
    offers: Sequence[ServerOffer],
    provider: str,
    *,
    known: Mapping[tuple[McpCapability, str], str],
    names_in_use: Collection[str],
) -> dict[tuple[McpCapability, str], str]:
    """One name per offer, by its key, `[A-Za-z][A-Za-z0-9_-]{0,63}`.

    Args:
        offers: The offers of one server.
        provider: Its name, the prefix of a tool's name that another provider's tool already has.
        known: Names of an earlier import, which stay.
        names_in_use: Names of tools that are not this provider's.
    """
    names = {offer.key: known[offer.key] for offer in offers if offer.key in known}
    used = {*names_in_use, *names.values()}
    exact_first = sorted((offer for offer in offers if offer.key not in names), key=lambda offer: not _is_legal(offer))
    for offer in exact_first:
        wanted = _best_name(offer)
        candidates = (
            wanted,
            fitting(f"{_legal(provider)}_{wanted}"),
            _with_hash(f"{_legal(provider)}_{wanted}", offer),
        )
        name = next(candidate for candidate in candidates if candidate not in used)
        names[offer.key] = name
        used.add(name)
    return names


def _is_legal(offer: ServerOffer) -> bool:
    return offer.capability == "tool" and _LEGAL.fullmatch(offer.name) is not None and len(offer.name) <= MAX_NAME


def _best_name(offer: ServerOffer) -> str:
    if _is_legal(offer):
        return offer.name
    spelled = offer.name if offer.capability != "resource" else offer.text("name") or offer.name
    name = _PREFIXES[offer.capability] + _legal(spelled)
    if not name[:1].isalpha():
        name = f"{offer.capability}_{name}".rstrip("_-")
    return fitting(name) if _PLAIN.fullmatch(spelled) else _with_hash(name, offer)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("_", text).strip("_-")


def _with_hash(name: str, offer: ServerOffer) -> str:
    return with_hash(name, f"{offer.capability} {offer.name}")


_NO_NAMES: Final[Mapping[tuple[McpCapability, str], str]] = MappingProxyType({})
_MOST_SHOWN: Final = 100
_MOST_WHY: Final = 300


def import_mcp(
    listing: ServerListing,
    provider: ProviderDefinition,
    *,
    known: Mapping[tuple[McpCapability, str], str] = _NO_NAMES,
    names_in_use: Collection[str] = (),
) -> ImportedApi:
    """Make a tool of everything that a server offers.

    Args:
        listing: What it offers.
        provider: The server.
        known: Names that its offers have as tools from an earlier import.
        names_in_use: Names of tools that are not the provider's.

    Returns:
        Definitions that are not stored anywhere yet, and everything that was not kept as it was.
    """
    names = tool_names(listing.offers, provider.name, known=known, names_in_use=names_in_use)
    made = [_import_offer(offer, names[offer.key], provider.name) for offer in listing.offers]
    left_out = [_report_unusable(entry) for entry in listing.unusable]
    tools = tuple(tool for tool, _ in made if tool is not None)
    report = LossReport(format="MCP", operations=(*(entry for _, entry in made), *left_out))
    metadata = {**provider.metadata, "server": _server(listing), "import": report.summary()}
    groups = tuple(_groups(tools))
    described = provider.model_copy(update={"metadata": metadata})
    return ImportedApi(described, tools, groups, report, is_partial=listing.is_cut_off)


def _import_offer(offer: ServerOffer, name: str, provider: str) -> tuple[ToolDefinition | None, OperationImport]:
    losses = Losses()
    if name != offer.name and offer.list_name == "tools":
        losses.add_changed(
            offer.place,
            "syntax",
            "name",
            f"the tool is called {name!r}, because the server's name is taken or no name of a tool",
        )
    tool = _tool(offer, name, provider, losses)
    entry = OperationImport(
        operation=f"{offer.capability} {_display_name(offer.name)}",
        place=offer.place,
        tool=None if tool is None else tool.name,
        group=None if tool is None else offer.capability,
        kept=() if tool is None else tuple(sorted(offer.fingerprint)),
        losses=losses.report(),
    )
    return tool, entry


def _tool(offer: ServerOffer, name: str, provider: str, losses: Losses) -> ToolDefinition | None:
    if _object(offer.document.get("execution")).get("taskSupport") == "required":
        why = "left out: the server executes it only as a task (execution.taskSupport), which calls here cannot start"
        losses.add_dropped(offer.place, "operation", "operation", why)
        return None
    try:
        tool = make_tool(offer, name, provider, losses)
        check_definition(tool)
        tell_large_input(name, tool.input_schema, offer.place, losses)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
    except InvalidDefinition as error:
        why = str(error)
    else:
        return tool
    losses.add_dropped(offer.place, "operation", "operation", f"left out: {why}"[:_MOST_WHY])
    return None


def _report_unusable(entry: Unusable) -> OperationImport:
    losses = Losses()
    losses.add_dropped(entry.place, "operation", "operation", f"left out: {entry.why}"[:_MOST_WHY])
    return OperationImport(operation=_display_name(entry.name), place=entry.place, tool=None, losses=losses.report())


def _groups(tools: Sequence[ToolDefinition]) -> Iterator[Group]:
    capabilities = [tag for tool in tools for tag in tool.tags]
    for capability in dict.fromkeys(capabilities):
        yield Group(capability, capabilities.count(capability), "")


def _server(listing: ServerListing) -> str:
    """The server's name and version as it gives them, to be shown; and a hash if it gives anything else."""
    facts = listing.server or {}
    known = " ".join(
        _display_name(value) for field in ("name", "version") if isinstance(value := facts.get(field), str)
    )
    return known or (content_hash(facts) if facts else "")


def _display_name(name: str) -> str:
    return visible(name)[:_MOST_SHOWN]

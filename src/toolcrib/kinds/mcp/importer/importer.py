"""What an MCP server lists as a provider's tools: `import_mcp`, a pure function.

Whoever calls it has listed, and stores the result. What cannot be a tool is left out, said so in the report, and the
others go on: one broken entry of a server takes nothing else with it.

Names of the tools that a server's offers become: legal for every model provider, unique, and kept once given.

A name that is spelled with anything but ASCII letters, digits, `_` and `-` gets a hash of its true spelling, so that no
look-alike comes close to the name that it imitates.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from toolcrib.contracts import (
    InvalidDefinition,
    LossReport,
    OperationImport,
    ProviderDefinition,
    ToolDefinition,
    content_hash,
)
from toolcrib.core.providers.imports import MAX_NAME, Group, ImportedApi, Losses, fitting, with_hash
from toolcrib.core.registry import check_definition
from toolcrib.kinds.mcp.importer.offers import ServerListing, ServerOffer, Unusable
from toolcrib.kinds.mcp.importer.tools import make_tool, visible
from toolcrib.kinds.mcp.shape import McpCapability

_LEGAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN: Final = re.compile(r"[ -~]*")
_PREFIXES: Final[Mapping[McpCapability, str]] = {"tool": "", "resource": "read_", "prompt": "prompt_"}


def tool_names(
    offers: Sequence[ServerOffer],
    provider: str,
    *,
    known: Mapping[tuple[McpCapability, str], str],
    taken: Collection[str],
) -> dict[tuple[McpCapability, str], str]:
    """One name per offer, by its key, `[A-Za-z][A-Za-z0-9_-]{0,63}`.

    Args:
        offers: Of one server.
        provider: Its name, which goes in front of a name that a tool of somebody else has.
        known: Names of an earlier import, which stay.
        taken: Names of tools that are not this provider's.
    """
    names = {offer.key: known[offer.key] for offer in offers if offer.key in known}
    used = {*taken, *names.values()}
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
    taken: Collection[str] = (),
) -> ImportedApi:
    """Make a tool of everything that a server offers.

    Args:
        listing: What it offers.
        provider: The server.
        known: Names that its offers have as tools from an earlier import.
        taken: Names of tools that are not the provider's.

    Returns:
        Definitions that are not stored anywhere yet, and everything that was not kept as it was.
    """
    names = tool_names(listing.offers, provider.name, known=known, taken=taken)
    made = [_import_offer(offer, names[offer.key], provider.name) for offer in listing.offers]
    left_out = [_report_unusable(entry) for entry in listing.unusable]
    tools = tuple(tool for tool, _ in made if tool is not None)
    report = LossReport(format="MCP", operations=(*(entry for _, entry in made), *left_out))
    metadata = {**provider.metadata, "server": _server(listing), "import": report.summary()}
    groups = tuple(_groups(tools))
    return ImportedApi(provider.model_copy(update={"metadata": metadata}), tools, groups, report)


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
    try:
        tool = make_tool(offer, name, provider, losses)
        check_definition(tool)
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
    said = listing.server or {}
    known = " ".join(_display_name(value) for field in ("name", "version") if isinstance(value := said.get(field), str))
    return known or (content_hash(said) if said else "")


def _display_name(name: str) -> str:
    return visible(name)[:_MOST_SHOWN]

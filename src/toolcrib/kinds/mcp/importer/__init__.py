"""MCP servers (modelcontextprotocol.io) as providers and tools.

`offers` reads what a server lists and fingerprints it, `names`, `prose`, `schemas` and `tools` make definitions of it,
`importer` all of it; `commands` says which programs may be started for it. Nothing here connects to a server or starts
one: that is `toolcrib.kinds.mcp.runtime`.
"""

from toolcrib.kinds.mcp.importer.importer import import_mcp
from toolcrib.kinds.mcp.importer.offers import NAMED_BY, ServerListing, ServerOffer, Unusable, differences, read_listing
from toolcrib.kinds.mcp.importer.programs import AllowedPrograms, Program

__all__ = [
    "NAMED_BY",
    "AllowedPrograms",
    "Program",
    "ServerListing",
    "ServerOffer",
    "Unusable",
    "differences",
    "import_mcp",
    "read_listing",
]

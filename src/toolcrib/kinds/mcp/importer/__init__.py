"""Creates providers and tools from MCP servers (modelcontextprotocol.io).

`offers` reads and fingerprints what a server lists, `importer` makes definitions of it, `programs` says which programs
may be started as servers. Nothing here connects to a server or starts one; that is `kinds.mcp.runtime`. Imported by
`kinds.mcp` and `crib`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.kinds.mcp.importer.importer import import_mcp
    from toolcrib.kinds.mcp.importer.offers import (
        NAMED_BY,
        ServerListing,
        ServerOffer,
        Unusable,
        differences,
        read_listing,
    )
    from toolcrib.kinds.mcp.importer.programs import AllowedPrograms, Program
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.kinds.mcp.importer.importer": "import_mcp",
            "toolcrib.kinds.mcp.importer.offers": (
                "NAMED_BY ServerListing ServerOffer Unusable differences read_listing"
            ),
            "toolcrib.kinds.mcp.importer.programs": "AllowedPrograms Program",
        },
    )

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

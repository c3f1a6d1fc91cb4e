"""The catalogue of a crib: list, search, deprecate and block tools; prompts, named definitions, queries over lists.

Imported within `crib`, and by `interfaces`. The catalogue itself is in `toolcrib.core.registry`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.tools.lifecycle import ToolLife
    from toolcrib.crib.tools.listing import NamedThings, ToolListing, check_grants
    from toolcrib.crib.tools.prompts import Prompts
    from toolcrib.crib.tools.queries import Queries
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.tools.lifecycle": "ToolLife",
            "toolcrib.crib.tools.listing": "NamedThings ToolListing check_grants",
            "toolcrib.crib.tools.prompts": "Prompts",
            "toolcrib.crib.tools.queries": "Queries",
        },
    )

__all__ = ["NamedThings", "Prompts", "Queries", "ToolLife", "ToolListing", "check_grants"]

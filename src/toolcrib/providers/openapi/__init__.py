"""OpenAPI documents as providers and tools.

The way through the package: `sources` reads text under bounds, `library` follows references, `openapi2` and `openapi3`
take operations apart into `parts`; `parameters`, `bodies` and `responses` turn the parts into JSON Schema through
`schemas`, `arguments` makes one flat input of them, `paging`, `security` and `servers` say how the request is made,
`tools` makes a definition, `importer` all of it. Every step tells `losses` what it does not keep; `fields` and
`accounting` tell what no step asked for. Nothing here knows HTTP requests.
"""

from toolcrib.providers.openapi.groups import Group
from toolcrib.providers.openapi.importer import ImportedApi, import_openapi
from toolcrib.providers.openapi.limits import Bounds
from toolcrib.providers.openapi.overrides import ToolOverride

__all__ = ["Bounds", "Group", "ImportedApi", "ToolOverride", "import_openapi"]

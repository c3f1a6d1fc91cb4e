"""OpenAPI documents as providers and tools.

The way through the package: `document` reads text under bounds, `operations` resolves what an operation is made of,
`parameters`, `bodies` and `responses` turn its parts into JSON Schema through `schemas`, `arguments` makes one flat
input of them, `tools` a definition, `importer` all of it. Other versions, body types and paging styles are further
readers of these parts; nothing here knows HTTP requests.
"""

from toolcrib.providers.openapi.importer import ImportedApi, import_openapi
from toolcrib.providers.openapi.losses import Loss
from toolcrib.providers.openapi.overrides import ToolOverride

__all__ = ["ImportedApi", "Loss", "ToolOverride", "import_openapi"]

"""OpenAPI documents as providers and tools.

The way through the package: `sources` reads text under bounds, `library` follows references, `openapi2` and `openapi3`
take operations apart into `parts`; `parameters`, `bodies` and `responses` turn the parts into JSON Schema through
`schemas`, `arguments` makes one flat input of them, `paging`, `security` and `servers` say how the request is made,
`tools` makes a definition, `importer` all of it. `fetching` brings the documents that one refers to.
Every step tells `losses` what it does not keep; `fields` and
`accounting` tell what no step asked for. Nothing here knows HTTP requests.
"""

from toolcrib.kinds.http.openapi.importer import import_openapi
from toolcrib.kinds.http.openapi.read.library import Fetch, fetch_documents
from toolcrib.kinds.http.openapi.read.nodes import Bounds

__all__ = ["Bounds", "Fetch", "fetch_documents", "import_openapi"]

"""Creates providers and tools from OpenAPI documents.

`read` reads documents within limits and follows references. `operations` takes operations apart, for each version of
OpenAPI, with their servers and security. `request_bodies`, `responses` and `schemas` make JSON Schema; `arguments`
makes one flat input; `paging` detects paged lists; `importer` combines all of this. Each step reports what it does not
keep. Nothing here executes a tool; that is `kinds.http.runtime`. Imported by `kinds.http.commands`.
"""

from toolcrib.kinds.http.openapi.importer import import_openapi
from toolcrib.kinds.http.openapi.read.documents import Fetch, fetch_documents
from toolcrib.kinds.http.shape import Bounds

__all__ = ["Bounds", "Fetch", "fetch_documents", "import_openapi"]

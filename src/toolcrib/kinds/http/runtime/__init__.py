"""Executes tools that are HTTP operations: makes a request from arguments, and an output or an error from the response.

`requests`, `styles` and `bodies` make the request, `exchange` sends it under the egress policy, `answers` and
`formats` read the response, `failures` maps its status to an error, `pages` follows paged lists. Nothing is stored,
and no status is retried here, with one exception that `HttpRuntime` explains: a page in the middle of a list. Imported
by `kinds.http` and `kinds.graphql`.
"""

from toolcrib.kinds.http.runtime.runtime import HttpRuntime, ShownRequest, preview_request

__all__ = ["HttpRuntime", "ShownRequest", "preview_request"]

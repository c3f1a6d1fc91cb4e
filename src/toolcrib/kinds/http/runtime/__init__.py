"""Runs tools that are HTTP operations: arguments become a request, the answer an outcome or an explained failure.

`styles` writes values into URLs and headers, `requests` makes the request, `answers` reads what came back, `failures`
says what a status means, `exchange` sends through the one way out, `pages` follows cursors. Nothing is stored, and no
status is retried here, but for one thing that `HttpRuntime` explains: a page in the middle of a list.
"""

from toolcrib.kinds.http.runtime.runtime import HttpRuntime, ShownRequest, preview_request

__all__ = ["HttpRuntime", "ShownRequest", "preview_request"]

"""What becomes of an answer's bytes, as `HttpImplementation.response` wants it.

`reading` decides by form and content, `delimited` reads CSV and TSV, `readers` has a stranger's HTML read by `page` in
a process of its own. JSON is read by `answers`, as ever. Nothing is sent and nothing is stored here.
"""

from toolcrib.kinds.http.runtime.formats import Kept, Reading, check_form, read_as

__all__ = ["Kept", "Reading", "check_form", "read_as"]

"""The Restate engine: runs are driven by workers that a Restate cluster calls; the journal stays the truth.

A process that begins runs needs `RestateEngine` and no further package. A worker needs Restate's library and an HTTP/2
server (the extra `restate`), which are loaded when it serves.
"""

from toolcrib.engines.restate.drives import Drives
from toolcrib.engines.restate.engine import RestateEngine
from toolcrib.engines.restate.ingress import Ingress, RestateClient
from toolcrib.engines.restate.options import RestateOptions
from toolcrib.engines.restate.outbox import Outbox
from toolcrib.engines.restate.worker import Terms, Worker

__all__ = ["Drives", "Ingress", "Outbox", "RestateClient", "RestateEngine", "RestateOptions", "Terms", "Worker"]

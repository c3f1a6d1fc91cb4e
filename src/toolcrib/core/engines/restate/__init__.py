"""The Restate engine: a Restate cluster calls workers, which drive runs; the journal stays in the store.

Starting runs needs only `RestateEngine`. A worker needs Restate's library and an HTTP/2 server (the extra `restate`),
which load when it serves.
"""

from toolcrib.core.engines.restate.drives import RestateDriver
from toolcrib.core.engines.restate.ingress import Ingress, RestateClient
from toolcrib.core.engines.restate.options import RestateOptions
from toolcrib.core.engines.restate.outbox import Outbox
from toolcrib.core.engines.restate.restate_engine import RestateEngine
from toolcrib.core.engines.restate.worker import RestateWorker, WorkerTerms

__all__ = [
    "Ingress",
    "Outbox",
    "RestateClient",
    "RestateDriver",
    "RestateEngine",
    "RestateOptions",
    "RestateWorker",
    "WorkerTerms",
]

"""The Restate engine: a Restate cluster calls workers, which drive runs; the journal stays in the store.

Starting runs needs only `RestateEngine`. A worker needs Restate's library and an HTTP/2 server (the extra `restate`),
which load when it serves.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.engines.restate.drives import RestateDriver
    from toolcrib.core.engines.restate.ingress import Ingress, RestateClient
    from toolcrib.core.engines.restate.options import RestateOptions
    from toolcrib.core.engines.restate.outbox import Outbox
    from toolcrib.core.engines.restate.restate_engine import RestateEngine
    from toolcrib.core.engines.restate.worker import RestateWorker, WorkerTerms
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.engines.restate.drives": "RestateDriver",
            "toolcrib.core.engines.restate.ingress": "Ingress RestateClient",
            "toolcrib.core.engines.restate.options": "RestateOptions",
            "toolcrib.core.engines.restate.outbox": "Outbox",
            "toolcrib.core.engines.restate.restate_engine": "RestateEngine",
            "toolcrib.core.engines.restate.worker": "RestateWorker WorkerTerms",
        },
    )

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

"""Clients of a server's REST API, asynchronous and synchronous, typed by the contracts.

Written from the OpenAPI document by `python -m tools.rest_client`; only `transport`, `problems` and `groups` are not.
They need no extra.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.client.clients import AsyncClient, Client
    from toolcrib.client.problems import ServerProblem, ServerUnreachable
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.client.clients": "AsyncClient Client",
            "toolcrib.client.problems": "ServerProblem ServerUnreachable",
        },
    )

__all__ = ["AsyncClient", "Client", "ServerProblem", "ServerUnreachable"]

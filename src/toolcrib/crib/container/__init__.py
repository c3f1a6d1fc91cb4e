"""Makes the parts of a crib once and connects them; also what all parts need: catalogue, access, requests.

Imported by `crib` only.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.container.access import Actor, RunVerb, StartRecord
    from toolcrib.crib.container.container import CribServices
    from toolcrib.crib.container.environment import (
        DefinitionOptions,
        Environment,
        SharingOptions,
        definitions_of,
        resolve_store,
        sharing_of,
    )
    from toolcrib.crib.container.model_services import llm_of
    from toolcrib.crib.container.requests import refusal_of, refusal_of_run, request_of
    from toolcrib.infrastructure.sandbox import machine_sandbox
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.container.access": "Actor RunVerb StartRecord",
            "toolcrib.crib.container.container": "CribServices",
            "toolcrib.crib.container.environment": (
                "DefinitionOptions Environment SharingOptions definitions_of resolve_store sharing_of"
            ),
            "toolcrib.crib.container.model_services": "llm_of",
            "toolcrib.crib.container.requests": "refusal_of refusal_of_run request_of",
            "toolcrib.infrastructure.sandbox": "machine_sandbox",
        },
    )

__all__ = [
    "Actor",
    "CribServices",
    "DefinitionOptions",
    "Environment",
    "RunVerb",
    "SharingOptions",
    "StartRecord",
    "definitions_of",
    "llm_of",
    "machine_sandbox",
    "refusal_of",
    "refusal_of_run",
    "request_of",
    "resolve_store",
    "sharing_of",
]

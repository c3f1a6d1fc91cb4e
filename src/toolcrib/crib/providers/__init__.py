"""Providers of a crib: imports, connections, reference data and secrets.

Imported within `crib` only.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.providers.connections import Connections
    from toolcrib.crib.providers.imports import Imports
    from toolcrib.crib.providers.model_catalog import ModelCatalog
    from toolcrib.crib.providers.reference_data import ReferenceData
    from toolcrib.crib.providers.secrets import Secrets
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.providers.connections": "Connections",
            "toolcrib.crib.providers.imports": "Imports",
            "toolcrib.crib.providers.model_catalog": "ModelCatalog",
            "toolcrib.crib.providers.reference_data": "ReferenceData",
            "toolcrib.crib.providers.secrets": "Secrets",
        },
    )

__all__ = ["Connections", "Imports", "ModelCatalog", "ReferenceData", "Secrets"]

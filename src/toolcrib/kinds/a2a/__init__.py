"""Tools of kind `a2a`: agents of other systems, asked by the A2A protocol.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.a2a.commands import IMPORTERS
from toolcrib.kinds.a2a.shape import A2aImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.a2a.runtime import A2aRuntime

    return A2aRuntime(parts.session, parts.access, blob_sink=parts.blobs, clock=parts.clock)


KIND = KindSpec(A2aImplementation, open_runtime=_open_runtime, importers=IMPORTERS)

"""Tools of kind `python`: functions of the application.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.python.shape import PythonImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.python.runtime import PythonRuntime

    return PythonRuntime(parts.session, parts.transactions, parts.blobs)


KIND = KindSpec(PythonImplementation, open_runtime=_open_runtime)

"""Tools of kind `plugin`: executed by runtimes of other packages, which `crib.container.plugins` loads.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.plugin.shape import PluginImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.core.kinds import PluginHost
    from toolcrib.kinds.plugin.runtime import PluginRuntimes

    return PluginRuntimes(parts.plugins(PluginHost(parts.session, parts.resolve_secret, parts.clock)))


KIND = KindSpec(PluginImplementation, open_runtime=_open_runtime)

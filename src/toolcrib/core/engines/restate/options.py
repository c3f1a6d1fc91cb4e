"""The configuration of a Restate server that our workers get along with: the text of a `restate.toml`.

Only what differs from Restate's defaults, with the reason beside it. `docs/restate.md` tells what was measured.
"""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from toolcrib.core.engines.restate.options_part import RestateOptions

_TEMPLATE: Final = """\
# Restate server for Toolcrib. Start it with: restate-server --config-file restate.toml
node-name = "toolcrib-1"                 # must stay the same: the data belong to it
base-dir = {folder}

disable-telemetry = true                 # else it reports to restate.gateway.scarf.sh every day
bind-ip = "{host}"                     # the default is every interface; ingress and admin ask nobody who they are
advertised-host = "{host}"
bind-port = {node}
listen-mode = "tcp"
default-num-partitions = 4               # the default is 24; set when the data are made, for good
rocksdb-total-memory-size = "256 MiB"    # the default is 2 GiB

[ingress]
bind-port = {ingress}

[admin]
bind-port = {admin}
disable-web-ui = true

[worker.invoker]
concurrent-invocations-limit = 100       # the default of 1000 makes one Python worker miss its keep-alives
http2-keep-alive-interval = "10s"        # with the time-out: a frozen worker is given up after 30 s
http2-keep-alive-timeout = "20s"

[default-retry-policy]                   # the default gives up after 70 attempts, and a person must resume
initial-interval = "100ms"
max-interval = "{retry}ms"
max-attempts = "unlimited"
"""


def server_config(options: RestateOptions, folder: Path, *, node_port: int = 5122) -> str:
    """The file's text.

    Args:
        options: Where the server shall be found.
        folder: Where it keeps its data.
        node_port: Of its own protocol, between the servers of a cluster.
    """
    ingress, admin = urlsplit(options.ingress_url), urlsplit(options.admin_url)
    return _TEMPLATE.format(
        folder=_quoted(str(folder)),
        host=ingress.hostname,
        ingress=ingress.port or 80,
        admin=admin.port or 80,
        node=node_port,
        retry=round(options.max_retry_s * 1000),
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

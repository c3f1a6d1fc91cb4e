"""Options of a Restate cluster, and the text of a suitable `restate.toml`.

It lists only differences from Restate's defaults, with their reasons. `docs/restate.md` has the measurements.
"""

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from toolcrib.contracts import Contract

_IDENTITY_KEY: Final = re.compile(r"publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,64}")


class RestateOptions(Contract):
    """Where Restate is, how it reaches a worker, and how long it waits; `docs/restate.md` explains all of it."""

    ingress_url: str = Field(default="http://127.0.0.1:8080", min_length=1)
    """Where runs are handed over."""
    admin_url: str = Field(default="http://127.0.0.1:9070", min_length=1)
    """Where workers are registered."""
    worker_host: str = Field(default="127.0.0.1", min_length=1)
    """Where a worker listens."""
    worker_port: int = Field(default=9080, ge=0, le=65535)
    """Its port, which several workers of one machine share; 0 takes any free one."""
    worker_url: str | None = None
    """How Restate reaches the workers; where this one listens, if null."""
    sweep_s: float = Field(default=1.0, ge=0.1, le=600)
    """Seconds between looks for runs that can go on and that nobody drives."""
    inactivity_s: float = Field(default=60.0, ge=1)
    """Seconds after which Restate asks a quiet worker to let go of an invocation."""
    abort_s: float = Field(default=86_400.0, ge=1)
    """Seconds after which it cuts that worker off."""
    retention_s: float = Field(default=86_400.0, ge=0)
    """Seconds for which it remembers an invocation that has ended."""
    max_retry_s: float = Field(default=30.0, ge=0.1, le=3600)
    """The longest that it waits between two attempts to reach a worker, in seconds."""
    identity_keys: tuple[str, ...] = ()
    """Public keys (`publickeyv1_…`) of which one must have signed what reaches a worker; none for no such check."""

    @field_validator("identity_keys")
    @classmethod
    def _are_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if odd := next((key for key in keys if not _IDENTITY_KEY.fullmatch(key)), None):
            raise ValueError(f"{odd[:30]!r} is not a public key of Restate, such as publickeyv1_…")
        return keys


_TEMPLATE: Final = """\
# Restate server for Toolcrib. Start it with: restate-server --config-file restate.toml
node-name = "toolcrib-1"                 # must stay the same: the data belong to it
base-dir = {folder}

disable-telemetry = true                 # else it reports to restate.gateway.scarf.sh every day
bind-ip = "{host}"                     # the default is every interface; ingress and admin do not authenticate callers
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
        folder=_quote(str(folder)),
        host=ingress.hostname,
        ingress=ingress.port or 80,
        admin=admin.port or 80,
        node=node_port,
        retry=round(options.max_retry_s * 1000),
    )


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

"""Clients of Restate's two HTTP interfaces: submitting runs, and registering a worker.

The interfaces have no authentication: keep them on loopback or in a private network. A separate egress policy allows
only these two addresses, so tools cannot reach them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import quote, urlsplit

import orjson

from toolcrib.contracts import InvalidSettings, NotFound, Unavailable
from toolcrib.core.engines.restate.options import RestateOptions
from toolcrib.infrastructure.net import EgressPolicy, HttpResponse, HttpSession, Timeouts

SERVICE: Final = "ToolcribRun"
"""Name of the virtual object whose keys are run ids."""
HANDLER: Final = "drive"
"""Its one handler."""

_TIMEOUTS: Final = Timeouts(connect_s=2.0, read_idle_s=5.0, total_s=5.0)
_DISCOVERY: Final = Timeouts(connect_s=2.0, read_idle_s=30.0, total_s=30.0)
_PORTS: Final = {"http": 80, "https": 443}
_JSON: Final[Mapping[str, str]] = MappingProxyType({"content-type": "application/json"})
_MOST: Final = 2**20
"""Bytes of an answer."""
_MOST_SHOWN: Final = 300


class Ingress(Protocol):
    """Where runs are handed over."""

    async def send(self, run_id: str, *, once: str | None = None) -> None:
        """Ask that a run be driven, durably: it will be, whatever happens to this process.

        Args:
            run_id: The run.
            once: Of all that is asked with the same words, only the first counts for a while; null for no such words.

        Raises:
            NotFound: No worker has been registered.
            Unavailable: Restate was not reached, or would not take it.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class RestateClient:
    """Speaks to one Restate cluster.

    Args:
        options: Where it is.
        owner: Names this process; what a person sees in Restate of who has asked.

    Raises:
        InvalidSettings: An address, of a worker too, is not an http or https URL with a host and without a password.
    """

    def __init__(self, options: RestateOptions, *, owner: str) -> None:
        self._body = orjson.dumps(owner)
        self._ingress = options.ingress_url.rstrip("/")
        self._admin = options.admin_url.rstrip("/")
        if options.worker_url is not None:
            _origin(options.worker_url)
        self._session = HttpSession(_policy(self._ingress, self._admin))

    async def send(self, run_id: str, *, once: str | None = None) -> None:
        """As `Ingress.send`."""
        url = f"{self._ingress}/{SERVICE}/{quote(run_id, safe='')}/{HANDLER}/send"
        headers = dict(_JSON) if once is None else {**_JSON, "idempotency-key": quote(once, safe="/:#")}
        answer = await self._session.request(
            "POST", url, headers=headers, body=self._body, timeout=_TIMEOUTS, follow_redirects=False, max_bytes=_MOST
        )
        if answer.status == 404:
            msg = f"Restate knows no service {SERVICE}: start `toolcrib worker --engine restate`, which registers it"
            raise NotFound(msg)
        if answer.status not in {200, 202}:
            raise _refusal_error("a run", answer)

    async def register(self, worker_url: str) -> None:
        """Tell Restate where a worker is; it asks the worker at once what it serves. Repeating it is harmless.

        Raises:
            Unavailable: Restate was not reached, or could not reach the worker.
        """
        body = orjson.dumps({"uri": worker_url, "force": True})
        url = f"{self._admin}/deployments"
        answer = await self._session.request(
            "POST", url, headers=_JSON, body=body, timeout=_DISCOVERY, follow_redirects=False, max_bytes=_MOST
        )
        if answer.status not in {200, 201}:
            raise _refusal_error(f"the worker at {worker_url}", answer)

    async def close(self) -> None:
        """Let go of connections."""
        await self._session.close()


def _policy(*urls: str) -> EgressPolicy:
    origins = [_origin(url) for url in urls]
    return EgressPolicy(
        hosts=tuple({host for host, _ in origins}),
        ports=tuple({port for _, port in origins}),
        allow=tuple({f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in origins}),
        max_redirects=0,
    )


def _origin(url: str) -> tuple[str, int]:
    """Host and port of an address, which messages do not repeat: what is no URL may have a password all the same."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        host, port = None, 0
    if not host or "@" in url:
        msg = "an address of Restate or of its workers is not a URL, or contains a user; write it like http://127.0.0.1:8080"
        raise InvalidSettings(msg)
    return host, port


def _refusal_error(what: str, answer: HttpResponse) -> Unavailable:
    body = answer.body.decode(errors="replace")[:_MOST_SHOWN]
    return Unavailable(f"Restate does not take {what}: status {answer.status}, {body}")

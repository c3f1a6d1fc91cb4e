"""Calls of one MCP tool through two gateways, Toolcrib and ContextForge, and without one, in one interleaved run.

Both gateways stand before the same server, with authentication, on SQLite, as one process, and are called with the same
requests: `tools/call` of the streamable HTTP transport, revision 2025-06-18. Toolcrib has policy and journal on; what
ContextForge logs by default stays on. Each round calls each of the three, in turn, so that a busy machine hits all.

    python -m benchmarks.mcp_gateway --rounds 5
"""

import argparse
import asyncio
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import httpx2
import orjson

from benchmarks.environments import ROOT, executable, peer_python
from benchmarks.report import table

DIRECT, OURS, THEIRS = "no gateway", "toolcrib", "contextforge"
THROUGHPUT_BAR: Final = 5.0
"""Times the calls per second of the peer."""
DELAY_BAR: Final = 1 / 3
"""Of the p95 that the peer adds."""
IN_FLIGHT: Final = 8
WARM_UP: Final = 20
_REVISION: Final = "2025-06-18"
_START_S: Final = 90.0
_OPEN: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@dataclass(slots=True)
class Target:
    """An address with a tool, and what was measured there."""

    name: str
    url: str
    tool: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    calls_per_s: list[float] = field(default_factory=list[float])
    p95_ms: list[float] = field(default_factory=list[float])
    """Of a single call at a time."""


async def open_session(client: httpx2.AsyncClient, target: Target) -> None:
    """Initialize, and keep the session that the server names, if any."""
    begin = {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
    response = await _post(client, target, {"id": 0, "method": "initialize", "params": begin})
    target.headers["MCP-Protocol-Version"] = _REVISION
    if session := response.headers.get("mcp-session-id"):
        target.headers["Mcp-Session-Id"] = session
    await _post(client, target, {"method": "notifications/initialized"})


async def call(client: httpx2.AsyncClient, target: Target, number: int) -> float:
    """Call the tool once; seconds that it took.

    Raises:
        RuntimeError: The answer is not the tool's.
    """
    began = perf_counter()
    params = {"name": target.tool, "arguments": {"text": f"call {number}"}}
    response = await _post(client, target, {"id": number, "method": "tools/call", "params": params})
    took = perf_counter() - began
    if f"call {number}" not in response.text or '"isError":true' in response.text.replace(" ", ""):
        msg = f"{target.name} answered {response.status_code}: {response.text[:300]}"
        raise RuntimeError(msg)
    return took


async def _post(client: httpx2.AsyncClient, target: Target, message: Mapping[str, Any]) -> httpx2.Response:
    body = orjson.dumps({"jsonrpc": "2.0", **message})
    response = await client.post(target.url, content=body, headers={**_OPEN, **target.headers})
    if response.status_code >= 400:
        msg = f"{target.name} answered {response.status_code}: {response.text[:300]}"
        raise RuntimeError(msg)
    return response


async def measure(client: httpx2.AsyncClient, target: Target, calls: int) -> None:
    """A round: calls one after the other for the delay, then as many with eight in flight for the throughput."""
    delays = [await call(client, target, number) for number in range(calls)]
    target.p95_ms.append(1000 * statistics.quantiles(delays, n=20)[-1])
    left = iter(range(calls, 3 * calls))

    async def caller() -> None:
        for number in left:
            await call(client, target, number)

    began = perf_counter()
    await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))
    target.calls_per_s.append(2 * calls / (perf_counter() - began))


@asynccontextmanager
async def process(
    command: Sequence[str | Path], port: int, environment: Mapping[str, str], log: Path
) -> AsyncGenerator[None]:
    """A server while it runs, from the moment that it listens."""
    with log.open("wb") as output:
        variables = {**os.environ, **environment}
        started = await asyncio.create_subprocess_exec(
            *map(str, command), env=variables, stdout=output, stderr=output, cwd=log.parent
        )
    try:
        await _listening(started, port, log)
        yield
    finally:
        started.terminate()
        try:
            await asyncio.wait_for(started.wait(), 10)
        except TimeoutError:
            started.kill()
            await started.wait()


async def _listening(started: asyncio.subprocess.Process, port: int, log: Path) -> None:
    until = perf_counter() + _START_S
    while perf_counter() < until and started.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        await writer.wait_closed()
        return
    msg = f"{log.stem} does not listen; see {log}"
    raise RuntimeError(msg)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@asynccontextmanager
async def toolcrib_gateway(folder: Path, upstream: str) -> AsyncGenerator[Target]:
    """`toolcrib up` with the server's tools imported, and a key that may call them."""
    port = free_port()
    program = Path(sys.executable).parent / "toolcrib"
    settings = {
        "TOOLCRIB_STORE": f"sqlite:///{folder / 'crib.db'}",
        "TOOLCRIB_EGRESS_ALLOW": upstream.removeprefix("http://").partition("/")[0],
    }

    def run(*arguments: str) -> str:
        return _output_of([program, *arguments], settings, folder)

    run("tool", "import-mcp", upstream, "--name", "demo")
    [tool] = json.loads(run("tool", "list", "--json"))
    key = json.loads(run("key", "add", "--scope", "ai://tools/*/*/execute", "--json"))["key"]
    async with process([program, "up", "--port", str(port)], port, settings, folder / "toolcrib.log"):
        yield Target(
            OURS, f"http://127.0.0.1:{port}/mcp", tool["definition"]["name"], {"Authorization": f"Bearer {key}"}
        )


@asynccontextmanager
async def contextforge_gateway(folder: Path, upstream: str) -> AsyncGenerator[Target]:
    """ContextForge as its quick start says, with the server registered and a virtual server with its tool."""
    port, python, admin = free_port(), peer_python("contextforge"), "admin@example.com"
    secret, password = secrets.token_urlsafe(40), f"Aa1!{secrets.token_urlsafe(20)}"
    settings = {
        "DATABASE_URL": f"sqlite:///{folder / 'contextforge.db'}",
        "AUTH_REQUIRED": "true",
        "MCP_CLIENT_AUTH_ENABLED": "true",
        "JWT_SECRET_KEY": secret,
        "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(40),
        "BASIC_AUTH_PASSWORD": password,
        "PLATFORM_ADMIN_EMAIL": admin,
        "PLATFORM_ADMIN_PASSWORD": password,
        "DEFAULT_USER_PASSWORD": password,
        "MCPGATEWAY_UI_ENABLED": "false",
        "MCPGATEWAY_ADMIN_API_ENABLED": "false",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "RATE_LIMITING_ENABLED": "false",  # its default of 100 calls a minute would end the run
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
    }
    gateway = executable(python.parent.parent, "mcpgateway")
    command = [gateway, "--host", "127.0.0.1", "--port", str(port), "--no-access-log"]
    async with process(command, port, settings, folder / "contextforge.log"):
        make_token = [python, "-m", "mcpgateway.utils.create_jwt_token", "--username", admin, "--exp", "600"]
        token = _output_of([*make_token, "--admin", "--secret", secret], settings, folder).split()[-1]
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            gateway_body = {"name": "demo", "url": upstream, "transport": "STREAMABLEHTTP"}
            _checked(await client.post("/gateways", json=gateway_body))
            [tool] = _checked(await client.get("/tools"))
            server = {"server": {"name": "demo", "associated_tools": [tool["id"]]}}
            made_server = _checked(await client.post("/servers", json=server))
        yield Target(THEIRS, f"http://127.0.0.1:{port}/servers/{made_server['id']}/mcp", tool["name"], headers)


def _output_of(command: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> str:
    variables = {**os.environ, **environment}
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{command[0]} failed: {done.stderr or done.stdout}"
        raise RuntimeError(msg)
    return done.stdout


def _checked(response: httpx2.Response) -> Any:
    if response.status_code >= 400:
        msg = f"contextforge answered {response.status_code} to {response.request.url}: {response.text[:500]}"
        raise RuntimeError(msg)
    return response.json()


async def compare(folder: Path, rounds: int, calls: int, peers: bool) -> list[Target]:
    """Measure all targets, interleaved."""
    async with AsyncExitStack() as stack:
        port = free_port()
        upstream = f"http://127.0.0.1:{port}/mcp"
        command = [sys.executable, "-m", "benchmarks.candidates.mcp_upstream", str(port)]
        environment = {"PYTHONPATH": str(ROOT)}
        await stack.enter_async_context(process(command, port, environment, folder / "upstream.log"))
        targets = [Target(DIRECT, upstream, "echo")]
        targets.append(await stack.enter_async_context(toolcrib_gateway(folder, upstream)))
        if peers:
            targets.append(await stack.enter_async_context(contextforge_gateway(folder, upstream)))
        limits = httpx2.Limits(max_connections=IN_FLIGHT)
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60, limits=limits, trust_env=False))
        for target in targets:
            await open_session(client, target)
            for number in range(WARM_UP):
                await call(client, target, number)
        for place in range(rounds):
            for target in targets[place % len(targets) :] + targets[: place % len(targets)]:
                await measure(client, target, calls)
    return targets


def report(targets: Sequence[Target]) -> str:
    """What was measured, and the bars."""
    direct = targets[0]
    rows = [
        (
            each.name,
            f"{statistics.median(each.calls_per_s):.0f}",
            f"{statistics.median(each.p95_ms):.1f}",
            f"{statistics.median(_added(each, direct)):.1f}",
        )
        for each in targets
    ]
    lines = [table(("gateway", "calls per second", "p95 in ms", "added p95 in ms"), rows)]
    if len(targets) == 3:
        _, ours, theirs = targets
        faster = statistics.median(a / b for a, b in zip(ours.calls_per_s, theirs.calls_per_s, strict=True))
        delay = statistics.median(a / b for a, b in zip(_added(ours, direct), _added(theirs, direct), strict=True))
        lines.append(f"throughput: {faster:.1f} times the peer's; bar {THROUGHPUT_BAR:g}")
        lines.append(f"added p95: {delay:.2f} of the peer's; bar {DELAY_BAR:.2f}")
    return "\n".join(lines)


def _added(target: Target, direct: Target) -> list[float]:
    return [a - b for a, b in zip(target.p95_ms, direct.p95_ms, strict=True)]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100, help="one after the other, per round; twice as many at once")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(report(asyncio.run(compare(Path(folder), given.rounds, given.calls, not given.alone))))


if __name__ == "__main__":
    main()

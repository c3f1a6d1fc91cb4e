"""The compatibility kit of A2A against an agent of a crib, and against an agent made with the SDK alone.

The kit is a checkout of https://github.com/a2aproject/a2a-tck: of its branch for protocol 1.0, or of the one for 0.3.
It runs in an environment of its own. Printed are, for each binding, how many of its tests passed and did not, and what
the agent of the crib fails and the SDK's does not. The exit status is 1 if the crib's agent passes fewer of them.

    git clone --branch 1.0-dev https://github.com/a2aproject/a2a-tck kit
    python -m benchmarks.a2a_kit kit

The kit says what an agent is to do by the prefix of a message's id, and sends no key. Both are added to its requests
here: the id as a further text of the message, which the scripted model of the agent then reads.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.etree import ElementTree

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.packaging.builds import uv
from tests.unit.a2a.other_agent import other_agent
from tests.unit.mcp_server.served import on_a_port
from toolcrib import Crib, ScriptedModel, ToolContext, tool
from toolcrib.contracts import OWNER, Principal
from toolcrib.interfaces.server import create_app
from toolcrib.llm import Request as ModelRequest
from toolcrib.testing import calls

KEY: Final = "kit"
BINDINGS: Final[Mapping[str, Sequence[str]]] = {"1.0": ("jsonrpc", "http_json"), "0.3": ("jsonrpc", "rest")}
"""Of each version of the protocol, as its kit names them."""
_ID: Final = re.compile(rb'"message_?[iI]d"\s*:\s*"([^"]+)"')


@tool(side_effects="none")
async def ask_more(context: ToolContext) -> str:
    """Ask for more."""
    return str(await context.ask("What more?", str))


def answer(request: ModelRequest) -> Any:
    """What the agent says to a message of the kit."""
    last = request.messages[-1]
    return calls("ask_more") if last.role == "user" and "tck-input-required" in last.text else "Hello from TCK"


class KitRequests:
    """Adds to the requests of the kit what it leaves out: a key, and the message's id as a text.

    Args:
        app: The server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body = _with_id(await Request(scope, receive).body())
        left = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        headers = [*left, (b"authorization", f"Bearer {KEY}".encode()), (b"content-length", str(len(body)).encode())]
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Message:
            return whole.pop() if whole else await receive()

        return await self._app({**scope, "headers": headers}, receive_whole, send)


def _with_id(body: bytes) -> bytes:
    found = _ID.search(body)
    if found is None:
        return body
    try:
        document = json.loads(body)
        message = document.get("params", document)["message"]
        if message["parts"]:
            message["parts"].append({**_kind(message), "text": found[1].decode()})
    except (AttributeError, KeyError, TypeError, ValueError):
        return body  # a request that the kit has made invalid
    return json.dumps(document).encode()


def _kind(message: dict[str, Any]) -> dict[str, str]:
    """What tells a text in version 0.3."""
    return {"kind": "text"} if "kind" in message or "kind" in message["parts"][0] else {}


async def _authenticate(token: str) -> Principal:
    return OWNER


@asynccontextmanager
async def crib_agent() -> AsyncGenerator[str]:
    """The address of a server whose only agent answers the kit."""
    with TemporaryDirectory() as folder:
        crib = Crib(f"sqlite:///{folder}/crib.db", models={"scripted:kit": ScriptedModel(answer)}, environment={})
        crib.add(ask_more)
        crib.agent("clerk", description="Answers the kit.", model="scripted:kit", tools=[ask_more])
        app = create_app(crib, _authenticate)
        async with app.router.lifespan_context(app), on_a_port(KitRequests(app)) as url:
            yield url.replace("/mcp", "/a2a/clerk")


@asynccontextmanager
async def sdk_agent() -> AsyncGenerator[str]:
    """The address of an agent of the SDK."""
    async with other_agent() as served:
        served.interfaces = [
            (served.url, binding, version) for binding in ("JSONRPC", "HTTP+JSON") for version in ("1.0", "0.3")
        ]
        yield served.url


class KitResult:
    """What a run of the kit has found.

    Args:
        report: Its report in the format of JUnit.
    """

    def __init__(self, report: Path) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()
        self.others = 0
        """Skipped, or expected to fail."""
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname', '')}::{case.get('name', '')}".removeprefix("tests.")
            outcomes = {child.tag for child in case}
            if outcomes & {"failure", "error"}:
                self.failed.add(name)
            elif "skipped" in outcomes:
                self.others += 1
            else:
                self.passed.add(name)

    def __str__(self) -> str:
        """The counts."""
        return f"{len(self.passed)}/{len(self.failed)} ({self.others} skipped)"


async def run_kit(kit: Path, version: str, binding: str, url: str) -> KitResult:
    """Run the kit against an agent."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        if version == "1.0":
            asked = ["tests/compatibility", f"--sut-host={url}", f"--transport={binding}"]
        else:
            asked = ["tests/mandatory", "tests/optional", f"--sut-url={url}", f"--transports={binding}"]
            asked += ["--test-scope=all"]
        layer = [uv(), "run", "--no-project", "--python", sys.executable, "--with-editable", "."]
        command = [*layer, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *asked]
        done = await asyncio.to_thread(subprocess.run, command, cwd=kit, capture_output=True, text=True, check=False)
        if not report.exists():
            msg = f"the kit did not run: {done.stdout[-1000:]}{done.stderr[-1000:]}"
            raise SystemExit(msg)
        return KitResult(report)


async def compare(kit: Path) -> bool:
    """Run the kit against both agents, and print what it finds; whether the crib's passes as many."""
    version = "1.0" if (kit / "tests" / "compatibility").is_dir() else "0.3"
    agents: Sequence[tuple[str, Any]] = (("SDK", sdk_agent), ("Toolcrib", crib_agent))
    good = True
    for binding in BINDINGS[version]:
        found: dict[str, KitResult] = {}
        for name, served in agents:
            opened: AbstractAsyncContextManager[str] = served()
            async with opened as url:
                found[name] = await run_kit(kit, version, binding, url)
        theirs, ours = found["SDK"], found["Toolcrib"]
        print(f"{version} {binding}: the SDK's agent {theirs}, the crib's {ours}", flush=True)
        for test in sorted(ours.failed):
            print(f"  fails {'here only' if test in theirs.passed else 'for both'}: {test}")
        good = good and len(ours.passed) >= len(theirs.passed)
    return good


def main() -> None:
    """Run the kit of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", type=Path, help="a checkout of the kit")
    sys.exit(0 if asyncio.run(compare(parser.parse_args().kit.resolve())) else 1)


if __name__ == "__main__":
    main()

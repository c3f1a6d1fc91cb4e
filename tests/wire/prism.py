"""Prism (npm `@stoplight/prism-cli`): a mock server of a document that refuses every request that does not meet it."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import orjson

from tests.node import node_command

_SCRIPT: Final = "@stoplight/prism-cli/dist/index.js"
_LISTENING: Final = re.compile(rb"Prism is listening on http://127\.0\.0\.1:([0-9]+)")
_START_S: Final = 180
_MOST_SHOWN: Final = 2_000


def readable(document: Any) -> Any:
    """The document as Prism can read it: without examples that are null, and with a type for bodies of `*/*`."""
    if isinstance(document, list):
        return [readable(entry) for entry in cast("list[Any]", document)]
    if not isinstance(document, dict):
        return document
    found = {
        key: value
        for key, value in cast("dict[str, Any]", document).items()
        if not (key == "example" and value is None)
    }
    content = found.get("content")
    if isinstance(content, dict) and "*/*" in content and "application/json" not in content:
        media = cast("dict[str, Any]", content)
        found["content"] = {("application/json" if name == "*/*" else name): body for name, body in media.items()}
    return {key: readable(value) for key, value in found.items()}


@asynccontextmanager
async def mocking(document: Any, folder: Path) -> AsyncGenerator[str]:
    """A mock server of a document; yields its address.

    Raises:
        RuntimeError: It did not start; the message holds what it said.
    """
    file = folder / "document.json"
    file.write_bytes(orjson.dumps(readable(document)))
    process = await asyncio.create_subprocess_exec(
        *node_command(_SCRIPT, "mock", "-h", "127.0.0.1", "-p", "0", str(file)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
    )
    said: list[bytes] = []
    output = cast("asyncio.StreamReader", process.stdout)
    try:
        port = await asyncio.wait_for(_port(output, said), _START_S)
        drain = asyncio.create_task(_drain(output))
        yield f"http://127.0.0.1:{port}"
        drain.cancel()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _port(output: asyncio.StreamReader, said: list[bytes]) -> int:
    async for line in output:
        said.append(line)
        found = _LISTENING.search(line)
        if found:
            return int(found[1])
    raise RuntimeError(f"Prism did not start:\n{b''.join(said).decode(errors='replace')[-_MOST_SHOWN:]}")


async def _drain(output: asyncio.StreamReader) -> None:
    while await output.read(2**16):
        pass

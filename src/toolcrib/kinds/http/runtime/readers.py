"""Has HTML read by the program in `page`, in a process that is ended if it takes too long. Holds no state."""

import asyncio
import contextlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import orjson

from toolcrib.contracts import InvalidSettings, JsonObject

MAX_HTML: Final = 2 * 2**20
"""Characters of a page that are read; what follows is left out."""

_LIMIT_S: Final = 10.0
PROGRAM: Final = str(Path(__file__).with_name("page.py"))


class Unreadable(ValueError):
    """The page could not be read within the limits."""


def check_reader() -> None:
    """Refuse to go on without what reads HTML.

    Raises:
        InvalidSettings: Names the extra that brings it.
    """
    if find_spec("selectolax") is None:
        raise InvalidSettings("reading HTML needs selectolax; install it with: pip install 'toolcrib[web]'")


async def read_html(html: str, url: str) -> JsonObject:
    """What a reader sees of a page; see `page.read_page`.

    Raises:
        Unreadable: It took too long or too much memory.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    text = f"{url}\n{html[:MAX_HTML]}".encode(errors="replace")
    try:
        async with asyncio.timeout(_LIMIT_S):
            answer, _ = await process.communicate(text)
    except TimeoutError:
        raise Unreadable(f"the page ({len(html)} characters) could not be read within {_LIMIT_S:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        raise Unreadable(f"the page ({len(html)} characters) could not be read within the limits of time and memory")
    return orjson.loads(answer)

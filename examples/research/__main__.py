"""The web by hand: `python -m examples.research [PORT]` serves it until it is interrupted."""

import asyncio
import sys

from examples.research.web import SEARCH_PATH, running_web


async def _serve(port: int) -> None:
    async with running_web(port) as web:
        print(f"{web.url}{SEARCH_PATH}?q=inventory+software", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(_serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        sys.exit(0)

"""The CRM as a process: `python examples/crm/server.py --db PATH`.

When it listens it prints one line of JSON on stdout, `{"url": ..., "token": ...}`, and nothing else ever. It stops
cleanly at SIGTERM and SIGINT and, with `--exit-with-parent`, when its stdin closes, so that a killed parent leaves no
orphan.
"""

import argparse
import asyncio
import json
import logging
import os
import secrets
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from examples.crm.app import create_app
from examples.crm.clock import Clock
from examples.crm.ratelimit import Rate
from examples.crm.store import Store
from examples.crm.values import format_timestamp

HOST: Final = "127.0.0.1"

_STDIN: Final = 0
_GRACE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    db: Path
    port: int
    rate: Rate
    seed: int
    reset: bool
    exit_with_parent: bool


def main() -> None:
    """Serve until told to stop; a bad database ends the process with a message and status 1."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    options = _options()
    try:
        store = Store(options.db, seed=options.seed, reset=options.reset)
    except (ValueError, OSError, sqlite3.Error) as error:
        sys.exit(f"crm: {options.db}: {error}")
    try:
        asyncio.run(_serve(store, options))
    finally:
        store.close()


async def _serve(store: Store, options: Options) -> None:
    clock = Clock()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.exit_with_parent:
        _watch_stdin(lambda: loop.call_soon_threadsafe(stop.set))

    token = f"crm_{secrets.token_urlsafe(24)}"
    store.admit_token(token, format_timestamp(clock.utc()))
    app = create_app(store, rate=options.rate, clock=clock)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GRACE_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, options.port).start()
        port: int = runner.addresses[0][1]
        print(json.dumps({"url": f"http://{HOST}:{port}", "token": token}), flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


def _watch_stdin(closed: Callable[[], object]) -> None:
    """Call `closed` once stdin ends.

    The descriptor is read, not `sys.stdin`, whose lock would abort Python if the thread still held it at exit.
    """

    def wait() -> None:
        while os.read(_STDIN, 4096):
            pass
        closed()

    threading.Thread(target=wait, name="crm-parent-watch", daemon=True).start()


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="crm", description="A small CRM over HTTP, on 127.0.0.1.")
    parser.add_argument("--db", type=Path, required=True, help="the SQLite file; made and filled if it does not exist")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes any free port")
    parser.add_argument(
        "--rate", type=_rate, default=Rate(50, 1), help="requests per token, as N/SECONDS (default 50/1)"
    )
    parser.add_argument("--seed", type=int, default=7, help="decides the data of a new file (default 7)")
    parser.add_argument("--reset", action="store_true", help="delete an existing file first")
    parser.add_argument("--exit-with-parent", action="store_true", help="stop when stdin closes")
    return Options(**vars(parser.parse_args()))


def _rate(text: str) -> Rate:
    try:
        return Rate.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    main()

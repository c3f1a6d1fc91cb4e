"""`toolcrib doctor`: what this machine can do, found out by trying it."""

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from toolcrib.interfaces.cli.support.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.infrastructure.sandbox import Probe


def doctor(as_json: AsJson = False) -> None:
    """Run a small job that attacks in every sandbox, and print which of them hold."""
    from toolcrib.crib.settings import load_settings

    sandbox = load_settings().settings.sandbox.open()

    async def probe() -> "Sequence[Probe]":
        try:
            return await sandbox.probe()
        finally:
            await sandbox.close()

    probes = asyncio.run(probe())
    if as_json:
        print(json.dumps([asdict(found) for found in probes], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_probes

    print_probes(probes)

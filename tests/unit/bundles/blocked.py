"""Replays all bundles of a folder in a process that may not open a connection or start another process.

python -m tests.unit.bundles.blocked FOLDER: prints one JSON object, what each file came to by its name.
"""

import asyncio
import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from toolcrib.crib.runs.bundles import replay_file

_FORBIDDEN = (
    "socket.connect",
    "socket.bind",
    "socket.getaddrinfo",
    "socket.sendto",
    "subprocess.Popen",
    "os.fork",
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "sqlite3.connect",
)


def forbid(event: str, arguments: object) -> None:
    """Refuse what a replay must not do."""
    if event in _FORBIDDEN:
        raise PermissionError(f"a replay must not do this: {event}")


async def replay_all(paths: Iterable[Path]) -> dict[str, object]:
    """Whether each is the same, with both hashes."""
    found: dict[str, object] = {}
    for path in paths:
        one = await replay_file(io.BytesIO(path.read_bytes()), path.name)
        divergence = None if one.divergence is None else one.divergence.model_dump(mode="json")
        found[path.name] = {"same": one.same, "equal": one.digest == one.recorded_digest, "divergence": divergence}
    return found


if __name__ == "__main__":
    sys.addaudithook(forbid)
    found = asyncio.run(replay_all(sorted(Path(sys.argv[1]).iterdir())))
    sys.stdout.write(json.dumps(found))

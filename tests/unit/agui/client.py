"""The official AG-UI client of the npm registry against a served agent: it verifies every event of every stream."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from tests.node import installed, node_command
from tests.unit.openai_endpoint.served import Endpoint

_SCRIPT: Final = Path(__file__).parents[2] / "node" / "agui_client.js"


def user(text: str, number: int = 1) -> dict[str, Any]:
    """A message of the person."""
    return {"id": f"u{number}", "role": "user", "content": text}


class AgUi:
    """What a client has received.

    Args:
        events: In order.
        failure: What the client's verifier or its HTTP says; null if nothing.
    """

    def __init__(self, events: list[dict[str, Any]], failure: str | None) -> None:
        self.events = events
        self.failure = failure

    @property
    def kinds(self) -> list[str]:
        """Types of the events, of which neighbours that are alike count once."""
        kinds = [event["type"] for event in self.events]
        return [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]

    @property
    def text(self) -> str:
        """All that the agent has said."""
        return "".join(event["delta"] for event in self.events if event["type"] == "TEXT_MESSAGE_CONTENT")

    @property
    def last(self) -> dict[str, Any]:
        """The event that ends the run."""
        return self.events[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type."""
        return [event for event in self.events if event["type"] == kind]


async def ask(served: Endpoint, agent: str = "clerk", *, key: str = "owner", **body: Any) -> AgUi:
    """Run an agent with the client."""
    url = f"{served.base_url.removesuffix('/v1')}/ag-ui/{agent}"
    command = node_command("@ag-ui/client/package.json")[0]
    process = await asyncio.create_subprocess_exec(
        command,
        str(_SCRIPT),
        str(installed() / "package.json"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    given = json.dumps({"url": url, "headers": {"Authorization": f"Bearer {key}"}, **body})
    printed, problems = await process.communicate(given.encode())
    assert process.returncode == 0, problems.decode()[-1000:]
    found = json.loads(printed)
    return AgUi(found["events"], found["failure"])

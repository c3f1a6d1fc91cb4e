"""The same import from the command line and over REST."""

import base64
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.grpc.protos import descriptor_set, old
from tests.unit.server.client import serving

pytestmark = pytest.mark.requirement("grpc.surfaces")


def test_the_command_line_imports_a_server_from_a_set(tmp_path: Path) -> None:
    described, store = tmp_path / "old.binpb", f"sqlite:///{tmp_path}/crib.db"
    described.write_bytes(descriptor_set(old()))
    done = toolcrib("tool", "import", "grpcs://old.example", "--name", "old", "--descriptors", described, store=store)
    assert done.exit_code == 0, done.stderr
    assert "Orders_Place (writes)" in done.stdout
    (tool,) = json.loads(toolcrib("tool", "list", "--json", store=store).stdout)
    assert tool["definition"]["implementation"]["method"] == "/old.Orders/Place"


def test_the_command_line_says_that_a_server_may_not_be_reached(tmp_path: Path) -> None:
    done = toolcrib("tool", "import", "grpc://127.0.0.1:1", "--name", "old", store=f"sqlite:///{tmp_path}/crib.db")
    assert done.exit_code == 1
    assert "egress denied: 127.0.0.1:1" in done.stderr


async def test_rest_imports_a_server_from_a_set() -> None:
    async with serving() as server:
        given = {
            "name": "old",
            "url": "grpcs://old.example",
            "descriptors": base64.b64encode(descriptor_set(old())).decode(),
        }
        report = await server.post("/ai/tools/import", given, status=201)
        assert report["tools"] == ["Orders_Place@1.0.0"]
        refused = await server.post("/ai/tools/import", {"name": "new", "url": "grpc://127.0.0.1:1"}, status=403)
        assert "egress denied" in json.dumps(refused)

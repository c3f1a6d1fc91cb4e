"""A database from the command line and over REST, as an operator and a client see it."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.entities.shop import engine_for
from tests.unit.server.client import checked, serving

pytestmark = pytest.mark.requirement("entities.surfaces")

VARIABLE = "TOOLCRIB_SECRET_SHOP_URL"
REFERENCE = f"${{env:{VARIABLE}}}"


def shop_file(folder: Path) -> str:
    """The URL of a database with the shop's tables."""
    file = folder / "shop.db"
    file.touch()
    url = f"sqlite:///{file}"
    with engine_for(url):
        pass
    return url


def test_the_command_line_imports_a_database_and_tells_its_tools(tmp_path: Path):
    store, environment = f"sqlite:///{tmp_path / 'crib.db'}", {VARIABLE: shop_file(tmp_path)}
    arguments = ("tool", "import-database", REFERENCE, "--name", "shop", "--table", "tags")

    told = toolcrib(*arguments, store=store, **environment)
    report = json.loads(toolcrib(*arguments, "--json", store=store, **environment).stdout)

    assert told.exit_code == 0
    assert "search_tags (reads)" in told.stdout
    assert "imported 6 tools of provider 'shop'" in told.stdout
    assert report["operations"][0]["tool"] == "search_tags"


def test_the_command_line_takes_no_url_and_repeats_none(tmp_path: Path):
    told = toolcrib(
        "tool", "import-database", "postgresql://u:swordfish@h/db", "--name", "shop", store=f"sqlite:///{tmp_path}/c.db"
    )

    assert told.exit_code == 2
    assert "by reference" in told.stderr
    assert "swordfish" not in told.stderr


async def test_a_client_generates_tools_lists_them_and_calls_one(tmp_path: Path):
    async with serving(environment={VARIABLE: shop_file(tmp_path)}) as server:
        body = {
            "name": "shop",
            "url": REFERENCE,
            "tables": ["tags"],
            "options": {"tags": {"singular": "label", "plural": "labels", "exclude": ["delete"]}},
        }
        made = await server.post("/ai/tools/generate", body, 201)
        first = await server.get("/ai/tools/generated", {"limit": 3})
        rest = await server.get("/ai/tools/generated", {"after": first["next"]})
        answer = await server.post("/ai/tools/count_labels/invoke", {"params": {}})

        assert made["provider"]["connection"] == {"kind": "database", "url": REFERENCE}
        assert made["tools"][0] == "search_labels@1.0.0"
        names = [item["definition"]["name"] for page in (first, rest) for item in page["items"]]
        assert names == ["count_labels", "create_label", "get_label", "search_labels", "update_label"]
        assert '"count":0' in json.dumps(answer, separators=(",", ":"))


async def test_a_client_without_the_grants_generates_nothing(tmp_path: Path):
    async with serving(environment={VARIABLE: shop_file(tmp_path)}) as server, server.client_of("reader") as reader:
        body = {"name": "shop", "url": REFERENCE}
        refused = checked(await reader.post("/api/v1/ai/tools/generate", json=body), 403)

        assert "ai://providers/shop/write" in str(refused)
        assert (await server.get("/ai/tools/generated"))["items"] == []


async def test_a_client_learns_nothing_of_variables_that_are_not_released(tmp_path: Path):
    async with serving(environment={"DATABASE_URL": shop_file(tmp_path)}) as server:
        told = await server.post("/ai/tools/generate", {"name": "shop", "url": "${env:DATABASE_URL}"}, 424)

        assert "${env:DATABASE_URL}, which is not set or not released" in str(told)

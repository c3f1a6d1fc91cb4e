"""Prompt fragments, service accounts and the vocabulary of workflows over REST."""

import pytest

from tests.unit.server.client import PRINCIPALS, Server, checked
from toolcrib.contracts import Principal, ServiceAccount

KINDS = {
    "fragments": {"name": "tone", "description": "", "text": "Answer briefly."},
    "accounts": {"name": "tone", "description": "", "grants": ["ai://tools/crm/*"], "enabled": True},
    "steps": {
        "name": "tone",
        "tool": "search",
        "description": "",
        "input_mapping": {"company": "${input.company}"},
        "output_mapping": {},
        "enabled": True,
    },
    "mcp_servers": {
        "name": "tone",
        "title": "CRM",
        "description": "",
        "tools": ["crm.*"],
        "excluded_tools": ["crm.delete_*"],
        "offer": "search",
        "enabled": True,
    },
    "triggers": {
        "name": "tone",
        "description": "",
        "when": {"kind": "cron", "cron": "0 6 * * *", "timezone": "UTC", "catch_up": "last", "max_catch_up": 100},
        "start": "search",
        "input": {"company": "Acme"},
        "account": "robot",
        "overlap": "skip",
        "enabled": True,
    },
    "conditions": {
        "name": "tone",
        "description": "",
        "parameters": ["total"],
        "expression": "${total > 100}",
        "enabled": True,
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("server.named")
async def test_they_are_written_read_listed_and_removed(server: Server, kind: str):
    path, body = f"/api/v1/ai/{kind}/tone", KINDS[kind]
    await server.crib.accounts.save(ServiceAccount(name="robot", enabled=False))

    assert checked(await server.client.put(path, json=body), 200) == body
    assert checked(await server.client.get(path), 200) == body
    listed = checked(await server.client.get(f"/api/v1/ai/{kind}"), 200)["items"]
    assert [item for item in listed if item["name"] == "tone"] == [body]
    assert (await server.client.put(path, json=body | {"name": "other"})).status_code == 422
    assert (await server.client.delete(path)).status_code == 204
    assert (await server.client.get(path)).status_code == 404


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("server.named", "server.grants")
async def test_nobody_reads_or_writes_them_without_a_grant(server: Server, kind: str, monkeypatch: pytest.MonkeyPatch):
    path, body = f"/api/v1/ai/{kind}/tone", KINDS[kind]
    await server.crib.accounts.save(ServiceAccount(name="robot", enabled=False))
    checked(await server.client.put(path, json=body), 200)
    monkeypatch.setitem(PRINCIPALS, "ann", Principal(id="ann", grants=(f"ai://{kind}/tone/read",)))
    reader = {"Authorization": "Bearer reader"}
    ann = {"Authorization": "Bearer ann"}

    assert (await server.client.get(path, headers=reader)).status_code == 403
    assert checked(await server.client.get(f"/api/v1/ai/{kind}", headers=reader), 200) == {"items": [], "next": None}
    assert checked(await server.client.get(f"/api/v1/ai/{kind}", headers=ann), 200) == {"items": [body], "next": None}
    assert (await server.client.put(path, json=body, headers=ann)).status_code == 403
    assert (await server.client.delete(path, headers=ann)).status_code == 403

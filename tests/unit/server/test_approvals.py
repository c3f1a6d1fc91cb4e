"""The inbox over REST: seen by those who may, decided by others than whose call it is."""

import json
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.server.client import Server, checked, serving
from toolcrib.contracts import InvalidInput, Json, PermissionDenied, Principal
from toolcrib.kinds.http.shape import HttpImplementation, HttpParameter

WON = {"params": {"stage": "won"}}


async def waiting(server: Server) -> dict[str, Any]:
    """A call of the owner's that waits, as the inbox shows it."""
    await server.post("/ai/tools/update/invoke", WON, status=202)
    [found] = (await server.get("/approvals", {"status": "waiting"}))["items"]
    return found


async def decided(server: Server, who: str, approval_id: str, body: Json, status: int) -> Any:
    """What the server answers somebody who decides."""
    return checked(await server.client_of(who).post(f"/api/v1/approvals/{approval_id}/decide", json=body), status)


@pytest.mark.requirement("approvals.inbox", "approvals.self", "server.decisions")
async def test_a_call_is_decided_by_somebody_else_than_who_started_the_run() -> None:
    async with serving() as server:
        found = await waiting(server)
        own = await decided(server, "owner", found["approval_id"], {"approved": True}, 403)
        assert "takes part in the run" in own["detail"]
        answered = await decided(server, "boss", found["approval_id"], {"approved": True, "reason": "fine"}, 200)
        late = await decided(server, "boss", found["approval_id"], {"approved": False}, 409)
        run = await server.finished(found["run_id"])

    assert (answered["status"], answered["decided_by"], answered["reason"]) == ("approved", "boss", "fine")
    assert "approved already, by 'boss'" in late["detail"]
    assert (run["run"]["status"], run["run"]["output"]) == ("completed", {"stage": "won"})


@pytest.mark.requirement("approvals.self")
async def test_an_operator_may_let_people_decide_on_their_own_calls() -> None:
    async with serving() as server:
        server.app.state.self_approval = True
        found = await waiting(server)
        answered = await decided(server, "owner", found["approval_id"], {"approved": True}, 200)
    assert answered["decided_by"] == "owner"


@pytest.mark.requirement("approvals.grant", "approvals.inbox")
async def test_who_has_no_grant_neither_sees_nor_decides() -> None:
    async with serving(driven=False) as server:
        found = await waiting(server)
        path = f"/api/v1/approvals/{found['approval_id']}"
        assert checked(await server.client_of("reader").get("/api/v1/approvals"), 200)["items"] == []
        for who in ("reader", "stranger"):
            checked(await server.client_of(who).get(path), 404)
        refused = await decided(server, "reader", found["approval_id"], {"approved": True}, 403)
        assert "'ai://approvals/update/write'" in refused["detail"]
        await decided(server, "stranger", found["approval_id"], {"approved": True}, 404)
        assert (await server.get(f"/approvals/{found['approval_id']}"))["approval"]["status"] == "waiting"


@pytest.mark.requirement("approvals.edit", "approvals.inbox")
async def test_arguments_that_do_not_fit_are_refused_with_their_problems_and_the_call_still_waits() -> None:
    async with serving() as server:
        found = await waiting(server)
        wrong = await decided(
            server, "boss", found["approval_id"], {"approved": True, "edited_input": {"stage": 7}}, 422
        )
        useless = {"approved": False, "edited_input": {"stage": "lost"}}
        await decided(server, "boss", found["approval_id"], useless, 422)
        edited = await decided(
            server, "boss", found["approval_id"], {"approved": True, "edited_input": {"stage": "lost"}}, 200
        )
        run = await server.finished(found["run_id"])

    assert [problem["path"] for problem in wrong["details"]["problems"]] == ["/stage"]
    assert (edited["status"], edited["edited_input"]) == ("edited", {"stage": "lost"})
    assert run["run"]["output"] == {"stage": "lost"}


@pytest.mark.requirement("approvals.edit")
@pytest.mark.parametrize("stage", ["\ud800", 10**30, b"won", json.loads("[" * 300 + "]" * 300)])
async def test_edited_arguments_that_are_no_json_leave_the_request_open(stage: Any) -> None:
    async with serving(driven=False) as server:
        found = await waiting(server)
        with pytest.raises(InvalidInput, match="the call still waits"):
            await server.crib.approvals.decide(found["approval_id"], approve=True, edited_input={"stage": stage})
        assert (await server.crib.approvals.get(found["approval_id"])).approval.status == "waiting"


@pytest.mark.requirement("approvals.inbox")
async def test_the_inbox_is_read_page_by_page() -> None:
    async with serving(driven=False) as server:
        for _ in range(3):
            await server.post("/ai/tools/update/invoke", WON, status=202)
        first = await server.get("/approvals", {"limit": 2})
        rest = await server.get("/approvals", {"limit": 2, "after": first["next"]})
        one = await server.get("/approvals", {"run_id": first["items"][0]["run_id"], "tool": "update"})
        none = await server.get("/approvals", {"tool": "search"})
        await server.get("/approvals", {"after": "apr_unknown"}, status=404)

    assert len({each["approval_id"] for each in (*first["items"], *rest["items"])}) == 3
    assert (rest["next"], one["items"], none["items"]) == (None, first["items"][:1], [])


@pytest.mark.requirement("approvals.preview")
async def test_a_preview_says_which_request_would_be_made_and_no_secret() -> None:
    tool = make_definition(
        "close_deal",
        title="Close a deal",
        requires_confirmation=True,
        side_effects="writes",
        input_schema={"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        implementation=HttpImplementation(
            method="POST",
            url="https://api.example.com/deals/{id}/close",
            headers={"X-Tenant": "k-123"},
            parameters=(HttpParameter(argument="id", name="id", place="path"),),
        ),
    )
    async with serving(driven=False) as server:
        await server.crib.save(tool)
        await server.post("/ai/tools/close_deal/invoke", {"params": {"id": "d 1"}}, status=202)
        [found] = (await server.get("/approvals"))["items"]
        view = await server.get(f"/approvals/{found['approval_id']}")

    preview = view["preview"]
    assert (preview["method"], preview["url"]) == ("POST", "https://api.example.com/deals/d%201/close")
    assert (preview["title"], preview["side_effects"], preview["arguments"]) == (
        "Close a deal",
        "writes",
        {"id": "d 1"},
    )
    assert "k-123" not in str(view)


@pytest.mark.requirement("approvals.self")
@pytest.mark.parametrize(
    "who",
    [
        Principal(id="bot", kind="agent"),
        Principal(id="helper", kind="service", acts_for="owner"),
        Principal(id="owner"),
    ],
)
async def test_neither_an_agent_nor_who_acts_for_the_starter_decides(who: Principal) -> None:
    async with serving(driven=False) as server:
        found = await waiting(server)
        with pytest.raises(PermissionDenied):
            await server.crib.acting_as(who).approvals.decide(found["approval_id"], approve=True)
        assert await server.crib.decide(found["run_id"], "call", approve=True)

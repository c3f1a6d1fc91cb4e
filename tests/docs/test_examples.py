"""The examples do what they say."""

import pytest

from examples.agents import demo as agents
from examples.kinds.demo import main


@pytest.mark.requirement("docs.examples")
async def test_a_model_uses_a_tool_of_each_kind_and_a_client_ends_the_last(capsys: pytest.CaptureFixture[str]):
    result = await main()

    assert result.summary.status == "completed"
    assert result.output == {
        "summary": '{"pieces":20}; {"usd":10.0}; {"currency":"EUR","per_usd":0.9}; 9.0; {"answer":"seen"}'
    }
    assert [envelope.status for envelope in result.envelopes] == ["success"] * 5
    assert capsys.readouterr().out == "the client shows {'notice': '20 bolts cost 9.00 EUR'}\n"


@pytest.mark.requirement("docs.agents_example")
async def test_an_agent_delegates_waits_hands_over_and_remembers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    refunded: list[str] = []
    monkeypatch.setattr(agents, "REFUNDED", refunded)

    first, second = await agents.main()

    assert refunded == ["4711: 40.00"]
    calls = [first.tools_by_id[call_id] for call_id in first.tool_order]
    assert [(call.name, call.status) for call in calls] == [
        ("find_order", "success"),
        ("policy", "success"),
        ("refund", "success"),
        ("print_label", "success"),
    ]
    assert calls[1].output == {"response": "Yes, within 30 days."}
    assert (first.status, first.handles, second.response) == (
        "completed",
        {"receipt": {"receipt": "R-4711"}},
        "It was R-4711.",
    )
    assert second.conversation_id == first.conversation_id
    assert "awaiting_approval: nothing is refunded yet: []" in capsys.readouterr().out

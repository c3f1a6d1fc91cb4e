"""The example with a tool of each kind does what it says."""

import pytest

from examples.kinds.demo import main

pytestmark = pytest.mark.requirement("docs.examples")


async def test_a_model_uses_a_tool_of_each_kind_and_a_client_ends_the_last(capsys: pytest.CaptureFixture[str]):
    result = await main()

    assert result.summary.status == "completed"
    assert result.output == {
        "summary": '{"pieces":20}; {"usd":10.0}; {"currency":"EUR","per_usd":0.9}; 9.0; {"answer":"seen"}'
    }
    assert [envelope.status for envelope in result.envelopes] == ["success"] * 5
    assert capsys.readouterr().out == "the client shows {'notice': '20 bolts cost 9.00 EUR'}\n"

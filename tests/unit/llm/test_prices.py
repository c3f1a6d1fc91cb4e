"""What calls cost."""

import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidSettings
from toolcrib.llm import Prices, TokenUsage

pytestmark = pytest.mark.requirement("llm.prices")

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MILLION = 1_000_000


def test_shipped_rates_price_fresh_cached_and_written_tokens_apart():
    cost = Prices().cost(TokenUsage(input=2 * MILLION, output=MILLION, cache_read=MILLION), "openai", "gpt-4o", NOON)

    assert cost.usd == Decimal("2.5") + Decimal("1.25") + Decimal(10)
    assert cost.source.startswith("genai-prices 0.")


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("google", "gemini-3-flash-preview", "0.5"),
        ("vertex-google", "gemini-3-flash-preview", "0.5"),
        ("vertex-anthropic", "claude-sonnet-4-5@20250929", "6"),
        ("bedrock-anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.3"),
        ("foundry-anthropic", "claude-sonnet-4-5", "6"),
        ("azure-openai", "gpt-4o", "2.5"),
        ("openai-sdk", "gpt-4o", "2.5"),
    ],
)
def test_a_model_in_a_cloud_costs_what_the_cloud_asks(provider: str, model: str, usd: str):
    assert Prices().cost(TokenUsage(input=MILLION), provider, model, NOON).usd == Decimal(usd)


def test_thoughts_and_cached_tokens_of_gemini_are_priced_as_it_counts_them():
    usage = TokenUsage(input=MILLION // 10, output=MILLION // 10, cache_read=MILLION // 20, reasoning=MILLION // 20)

    cost = Prices().cost(usage, "google", "gemini-2.5-flash", NOON)

    fresh, cached, written = Decimal("0.3") / 20, Decimal("0.03") / 20, Decimal("2.5") / 10
    assert cost.usd == fresh + cached + written


def test_a_tier_holds_for_all_tokens_of_a_call_above_its_threshold():
    def rate(tokens: int) -> Decimal:
        usd = Prices().cost(TokenUsage(input=tokens), "google", "gemini-2.5-pro", NOON).usd
        assert usd is not None
        return usd / tokens * MILLION

    assert (rate(200_000), rate(200_001)) == (Decimal("1.25"), Decimal("2.5"))


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "gpt-none"), ("ollama", "llama3.2"), ("openai-compatible", "x")]
)
def test_an_unknown_model_costs_none_and_never_zero(provider: str, model: str):
    cost = Prices().cost(TokenUsage(10, 10), provider, model, NOON)

    assert cost.usd is None
    assert f"has no {provider}:{model}; configure its price" in cost.source


def test_a_model_that_is_not_priced_by_tokens_is_unknown():
    cost = Prices().cost(TokenUsage(10, 10), "openai", "whisper-1", NOON)

    assert cost.usd is None
    assert "no token rates" in cost.source


def test_without_the_package_every_price_is_unknown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)

    cost = Prices().cost(TokenUsage(10, 10), "openai", "gpt-4o-not-asked-before", NOON)

    assert cost.usd is None
    assert "pip install 'toolcrib[prices]'" in cost.source


def test_configured_rates_win_over_shipped_ones():
    prices = Prices(
        {
            "openai:gpt-4o*": {"input": 1, "output": "2.5", "cache_read": 0.1, "cache_write": 3},
            "llama*": {"input": 0, "output": 0},
        }
    )
    usage = TokenUsage(input=3 * MILLION, output=MILLION, cache_read=MILLION, cache_write=MILLION)

    known = prices.cost(usage, "openai", "gpt-4o-mini", NOON)
    assert (known.usd, known.source) == (Decimal("6.6"), "configured openai:gpt-4o*")
    assert prices.cost(usage, "ollama", "llama3.2", NOON).usd == 0
    assert prices.cost(usage, "openai", "gpt-4.1", NOON).source.startswith("genai-prices")


def test_cached_tokens_cost_as_fresh_ones_where_nothing_else_is_said():
    prices = Prices({"m": {"input": 2, "output": 4}})

    assert prices.cost(TokenUsage(MILLION, 0, cache_read=MILLION // 2), "x", "m", NOON).usd == 2


def test_another_api_of_a_provider_costs_the_same():
    usage = TokenUsage(MILLION, MILLION)

    responses, chat = (Prices().cost(usage, name, "gpt-4o", NOON) for name in ("openai-responses", "openai"))
    assert responses == chat
    assert chat.usd is not None


def test_a_cost_of_estimated_tokens_says_so():
    cost = Prices().cost(TokenUsage(10, 10, estimated=True), "openai", "gpt-4o", NOON)

    assert cost.source.endswith(", tokens estimated")


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"input": 1, "output": 1, "cached": 1}, "'cached' is not a rate; known rates: input, output"),
        ({"input": 1}, "'output' is missing"),
        ({"input": -1, "output": 1}, "input is -1; give USD per million tokens"),
        ({"input": "free", "output": 1}, "input is 'free'"),
        ({"input": float("nan"), "output": 1}, "input is nan"),
    ],
)
def test_rates_that_make_no_sense_are_refused(rates: dict[str, Any], message: str):
    with pytest.raises(InvalidSettings, match=f"price of 'm': .*{message}"):
        Prices({"m": rates})

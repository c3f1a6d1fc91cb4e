"""What recorded answers cost, against a sum of its own over the raw JSON: equal, or what is not priced is named."""

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, cast

import pytest
from genai_prices import Usage, calc_price

from tests.wire.recordings import Exchange, exchanges
from tests.wire.test_recordings import decoded
from toolcrib.llm import Done, Response
from toolcrib.llm.base.prices import Cost, Prices

ANSWERS: Final = [exchange for exchange in exchanges() if exchange.status < 400 and not exchange.fails]
HAND_WRITTEN: Final = [exchange for exchange in ANSWERS if exchange.id.startswith("costs#")]
AT: Final = datetime(2026, 6, 1, tzinfo=UTC)
PROVIDERS: Final = {
    "api.anthropic.com": "anthropic",
    "api.groq.com": "groq",
    "api.openai.com": "openai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x-ai",
    "generativelanguage.googleapis.com": "google",
    "openrouter.ai": "openrouter",
}
NINE_PLACES: Final = Decimal("1e-9")


def response_of(exchange: Exchange) -> Response:
    if not exchange.streams:
        return exchange.wire.parse(exchange.body)
    done = decoded(exchange.wire, [exchange.body])[-1]
    assert isinstance(done, Done)
    return done.response


def model_of(exchange: Exchange, response: Response) -> str:
    return response.model or str(exchange.request.get("model", ""))


def cost_of(exchange: Exchange) -> Cost:
    response = response_of(exchange)
    provider = PROVIDERS.get(exchange.host, exchange.host)
    return Prices().cost(response.usage, provider, model_of(exchange, response), AT)


def usage_in(value: Any) -> dict[str, Any]:
    """All counts of an answer, the last of each name, wherever they stand."""
    found: dict[str, Any] = {}
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            found |= usage_in(item)
    if isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            if name in {"usage", "usageMetadata"} and isinstance(item, dict):
                found |= {key: one for key, one in cast("dict[str, Any]", item).items() if one is not None}
            else:
                found |= usage_in(item)
    return found


def tokens_in(counts: dict[str, Any]) -> dict[str, int]:
    """The counts of plain and cached tokens, and of audio and images, as the table of prices calls them."""

    def inside(name: str) -> dict[str, Any]:
        found = counts.get(name)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def by_kind(name: str, kinds: tuple[Any, ...]) -> int:
        details = cast("list[dict[str, Any]]", counts.get(name) or [])
        return sum(each.get("tokenCount", 0) for each in details if each.get("modality") in kinds)

    if "promptTokenCount" in counts:
        return {
            "input_tokens": counts["promptTokenCount"] + counts.get("toolUsePromptTokenCount", 0),
            "output_tokens": counts.get("candidatesTokenCount", 0) + counts.get("thoughtsTokenCount", 0),
            "cache_read_tokens": counts.get("cachedContentTokenCount", 0),
            "input_audio_tokens": by_kind("promptTokensDetails", ("AUDIO", 4)),
            "cache_audio_read_tokens": by_kind("cacheTokensDetails", ("AUDIO", 4)),
            "output_image_tokens": by_kind("candidatesTokensDetails", ("IMAGE", 2)),
        }
    if "prompt_tokens" in counts:
        read = inside("prompt_tokens_details")
        cached = read.get("cached_tokens") or counts.get("prompt_cache_hit_tokens") or 0
        return {
            "input_tokens": counts["prompt_tokens"],
            "output_tokens": counts.get("completion_tokens", 0),
            "cache_read_tokens": cached,
            "cache_write_tokens": min(read.get("cache_write_tokens") or 0, counts["prompt_tokens"] - cached),
        }
    read, cached = counts.get("cache_creation_input_tokens", 0), counts.get("cache_read_input_tokens", 0)
    details = inside("input_tokens_details")
    return {
        "input_tokens": counts["input_tokens"] + read + cached,
        "output_tokens": counts.get("output_tokens", 0),
        "cache_read_tokens": cached or details.get("cached_tokens", 0),
        "cache_write_tokens": read or details.get("cache_write_tokens", 0),
        "cache_write_1h_tokens": inside("cache_creation").get("ephemeral_1h_input_tokens", 0),
        "web_searches": inside("server_tool_use").get("web_search_requests", 0),
    }


def billed_in(counts: dict[str, Any]) -> Decimal | None:
    if "cost_in_usd_ticks" in counts:
        return Decimal(counts["cost_in_usd_ticks"]) / 10**10
    cost = counts.get("cost")
    if isinstance(cost, dict):
        return Decimal(str(cast("dict[str, Any]", cost)["total_cost"]))
    if cost is None:
        return None
    behind = cast("dict[str, Any]", counts.get("cost_details") or {}).get("upstream_inference_cost")
    return Decimal(str(cost)) + (Decimal(str(behind)) if counts.get("is_byok") and behind else 0)


@pytest.mark.requirement("costs.recordings")
@pytest.mark.parametrize("exchange", ANSWERS, ids=lambda exchange: exchange.id)
def test_a_recorded_answer_costs_its_independent_sum_or_names_what_is_not_priced(exchange: Exchange) -> None:
    """Finding: 51 of 1,611 answers were too low, without a word."""
    found = cost_of(exchange)
    counts = usage_in([json.loads(exchange.body)] if not exchange.streams else exchange.events)
    if not counts:
        assert found.usd is None or "tokens estimated" in found.source
        return
    told = billed_in(counts)
    if told is not None:
        assert found.usd == told
        assert found.source.startswith("billed by ")
        return
    provider, model = PROVIDERS.get(exchange.host, exchange.host), model_of(exchange, response_of(exchange))
    try:
        rates = calc_price(Usage(), model, provider_id=provider, genai_request_timestamp=AT).model_price
    except LookupError:
        rates = None
    if rates is None or rates.input_mtok is None or rates.output_mtok is None:
        assert found.usd is None
        assert found.source.startswith("unknown")
        return
    usage = Counter(tokens_in(counts))
    if (rates.web_searches_kcount is None) or not usage["web_searches"]:
        del usage["web_searches"]
    expected = rates.calc_price(Usage(**usage))["total_price"] if usage else Decimal(0)
    assert found.usd is not None
    tools = {
        "gemini": _gemini_searches(exchange),
        "responses": _openai_searches(exchange) * Decimal("0.01") + _file_searches(exchange) * Decimal("0.0025"),
    }
    assert abs(found.usd - expected - tools.get(exchange.api, Decimal(0))) < NINE_PLACES or found.not_priced


def _gemini_searches(exchange: Exchange) -> Decimal:
    """35 USD for a thousand grounded prompts, and 14 for a thousand searches since the third generation."""
    found: set[str] = set()
    for document in exchange.events if exchange.streams else [json.loads(exchange.body)]:
        candidates = cast("list[dict[str, Any]]", document.get("candidates") or [])
        for candidate in candidates:
            grounding = cast("dict[str, list[str]]", candidate.get("groundingMetadata") or {})
            found |= set(grounding.get("webSearchQueries") or ())
    if b"gemini-3" in exchange.body:
        return len(found) * Decimal("0.014")
    return Decimal("0.035") if found else Decimal(0)


def _items(exchange: Exchange) -> list[dict[str, Any]]:
    if not exchange.streams:
        return cast("list[dict[str, Any]]", json.loads(exchange.body).get("output") or [])
    return [event["item"] for event in exchange.events if event.get("type") == "response.output_item.done"]


def _openai_searches(exchange: Exchange) -> int:
    calls = [item for item in _items(exchange) if item.get("type") == "web_search_call"]
    return sum(call.get("action", {}).get("type", "search") == "search" for call in calls)


def _file_searches(exchange: Exchange) -> int:
    return sum(item.get("type") == "file_search_call" for item in _items(exchange))


EXPECTED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    # 250 text at 0.30, 700 audio at 1, 300 cached audio at 0.10, 4 out at 2.50 USD per million
    "costs#0": ("0.000815", ()),
    # 10 in at 0.30, 10 out as text at 2.50, 1,290 as image at 30
    "costs#1": ("0.038728", ()),
    # one grounded prompt at 0.035
    "costs#2": ("0.035008", ()),
    # 700 in at 3, 100 written at 3.75, 300 written for an hour at 6, 30 out at 15, two searches at 0.01
    "costs#3": ("0.024725", ()),
    "costs#4": ("0.00255", ("code_container",)),
    # 500 at 2.50, 20 at 10, one search at 0.01, one in files at 0.0025
    "costs#5": ("0.01395", ("code_container",)),
    "costs#6": ("0.00029", ("audio_input",)),
    "costs#7": ("0.0005", ()),
    # 2,161 read at 0.30, the other 7 written at 3.75, 12 out at 15
    "costs#8": ("0.00085455", ()),
    # 20 and 10 at 1, and 12 USD per thousand requests
    "costs#9": ("0.01203", ()),
    "costs#10": ("0.00503", ()),
    "costs#11": ("0.0037756", ()),
}


@pytest.mark.requirement("costs.recordings")
def test_what_is_billed_apart_from_plain_tokens_is_priced_by_hand_the_same() -> None:
    """Finding: audio to -79 %, images to -92 %, searches and programs not at all; overlapping caches too high."""
    found = {exchange.id: cost_of(exchange) for exchange in HAND_WRITTEN}
    assert {name: (cost.usd, cost.not_priced) for name, cost in found.items()} == {
        name: (Decimal(usd), lacks) for name, (usd, lacks) in EXPECTED.items()
    }
    told = {name: cost.source for name, cost in found.items() if cost.source.startswith("billed by ")}
    assert told == {"costs#7": "billed by openrouter", "costs#10": "billed by perplexity", "costs#11": "billed by x-ai"}

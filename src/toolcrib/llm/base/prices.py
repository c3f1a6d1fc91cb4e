"""Prices of model calls in US dollars per million tokens, and token estimates where a provider gives no counts.

What the provider says that it bills counts before all else. Rates come from a configured table, else from the
`genai-prices` package (extra `prices`), which includes its data. An unknown model costs None, never 0. A price tier
applies to all tokens of a call whose input exceeds the threshold, as providers bill it. Audio, images, video, searches
and programs of the provider have rates of their own; a cost names those that it does not include. Batch discounts are
not included. An estimate counts four characters as one token.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import metadata
from typing import Any, TypeAlias, cast

from msgspec import Struct

from toolcrib.contracts.base.errors import InvalidSettings
from toolcrib.contracts.specs.model_listing import ModelPrices
from toolcrib.llm.base.files import tokens_of_file
from toolcrib.llm.base.messages import (
    NO_TOOLS,
    PRICED_APART,
    FilePart,
    Message,
    Opaque,
    Request,
    Text,
    Thinking,
    TokenUsage,
    ToolCall,
    ToolResult,
    ToolSet,
)

_MILLION = Decimal(1_000_000)
_THOUSAND = Decimal(1000)
_HOUR_S = 3600
_BILLED_AS = {
    "anthropic-sdk": "anthropic",
    "azure-openai": "azure",
    "bedrock-anthropic": "aws",
    "foundry-anthropic": "anthropic",
    "openai-responses": "openai",
    "openai-sdk": "openai",
    "vertex-anthropic": "google",
    "vertex-google": "google",
}
"""Providers that are another way to reach one whose prices are known."""
_CONFIGURED = "configured"
_RATE_NAMES = ("input", "output", "cache_read", "cache_write")

RateTable: TypeAlias = Mapping[str, Mapping[str, Decimal | float | str]]
"""Model pattern (`openai:gpt-4o*`, `ollama:*`, or a bare `my-model`) to USD per million tokens, by `input`, `output`,
`cache_read` and `cache_write`; the last two default to `input`."""


class Cost(Struct, frozen=True, gc=False):
    """An amount and where its rates come from."""

    usd: Decimal | None
    """US dollars; None means unknown, never free."""
    source: str
    """Who billed it, or the table and its version, or why the amount is unknown."""
    not_priced: tuple[str, ...] = ()
    """What the amount does not include, by the names of `PRICED_APART`: it is a lower bound then."""


class _Rate(Struct, frozen=True):
    """USD per token."""

    base: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()
    """Input tokens above which another rate holds, highest first."""

    def at(self, input_tokens: int) -> Decimal:
        for start, price in self.tiers:
            if input_tokens > start:
                return price
        return self.base


class _Rates(Struct, frozen=True):
    input: _Rate
    output: _Rate
    cache_read: _Rate
    cache_write: _Rate
    source: str
    per_call: Decimal = Decimal(0)
    apart: Mapping[str, _Rate] = {}
    """What `PRICED_APART` names, per token or use."""
    one_price: frozenset[str] = frozenset()
    """Names of it that cost what plain tokens do."""

    def of(self, usage: TokenUsage) -> Decimal:
        """What the tokens and uses cost, without those that have no rate of their own.

        Tokens that were read from a cache cannot have been written to it by the same call: no token counts twice.
        """
        read = min(usage.cache_read, usage.input)
        written = min(usage.cache_write, usage.input - read)
        sent = usage.input
        plain = self.per_call + self.input.at(sent) * (sent - read - written)
        cached = plain + self.cache_read.at(sent) * read + self.cache_write.at(sent) * written
        total = cached + self.output.at(sent) * usage.output
        return total + self._apart(usage) if usage.more else total

    def lacks(self, usage: TokenUsage) -> tuple[str, ...]:
        """Names of what was used and has no rate."""
        return tuple(sorted(usage.more.keys() - self.apart.keys() - self.one_price))

    def _apart(self, usage: TokenUsage) -> Decimal:
        """What is to be added to the price of plain tokens, where some of them have a rate of their own."""
        more = Decimal(0)
        for name, number in usage.more.items():
            if (rate := self.apart.get(name)) is None:
                continue
            counted_as, cached = self._counted_as(name), usage.more.get(name.replace("_input", "_cache_read"), 0)
            tokens = number - cached if name.endswith("_input") and number >= cached else number
            more += (rate.at(usage.input) - counted_as.at(usage.input)) * tokens
        return more

    def _counted_as(self, name: str) -> _Rate:
        """The rate at which the plain counts have it already; nothing for what is no token."""
        if name == "cache_write_1h":
            return self.cache_write
        side = name.partition("_")[2]
        return {"input": self.input, "output": self.output, "cache_read": self.cache_read}.get(side, _NOTHING)


_NOTHING = _Rate(Decimal(0))


class Prices:
    """The rates of one configuration.

    Args:
        overrides: Rates that win over the shipped ones; the first pattern that fits counts.

    Raises:
        InvalidSettings: A rate is unknown, missing or no amount.
    """

    def __init__(self, overrides: RateTable | None = None) -> None:
        self._overrides = tuple((pattern, _override(pattern, rates)) for pattern, rates in (overrides or {}).items())

    def cost(self, usage: TokenUsage, provider: str, model: str, at: datetime) -> Cost:
        """What these tokens cost at a moment; rates change over time, and with some providers over the day.

        What a provider says that it bills includes everything.
        """
        if usage.billed_usd is not None:
            return Cost(usage.billed_usd, f"billed by {provider}")
        rates = self._overridden(provider, model) if self._overrides else None
        if rates is None:
            rates = _package_rates(provider, model, int(at.timestamp()) // _HOUR_S)
            if isinstance(rates, Cost):
                return rates
        source = f"{rates.source}, tokens estimated" if usage.estimated else rates.source
        if not usage.more:
            return Cost(rates.of(usage), source)
        lacks = rates.lacks(usage)
        return Cost(rates.of(usage), f"{source}, without {', '.join(lacks)}" if lacks else source, lacks)

    def rates(self, provider: str, model: str, at: datetime) -> ModelPrices | str:
        """The rates of a model's plain tokens at a moment, or why nobody knows them."""
        found = self._overridden(provider, model) or _package_rates(provider, model, int(at.timestamp()) // _HOUR_S)
        if isinstance(found, Cost):
            return found.source
        note = None if found.source.startswith(_CONFIGURED) else describe_model(provider, model).price_note
        return ModelPrices(
            input_usd=found.input.base * _MILLION,
            output_usd=found.output.base * _MILLION,
            cache_read_usd=found.cache_read.base * _MILLION,
            cache_write_usd=found.cache_write.base * _MILLION,
            tiered=bool(found.input.tiers or found.output.tiers),
            source=found.source,
            as_of=at,
            note=note,
        )

    def _overridden(self, provider: str, model: str) -> _Rates | None:
        for pattern, rates in self._overrides:
            if fnmatchcase(f"{provider}:{model}" if ":" in pattern else model, pattern):
                return rates
        return None


def _override(pattern: str, rates: Mapping[str, Decimal | float | str]) -> _Rates:
    if unknown := sorted(rates.keys() - set(_RATE_NAMES)):
        raise InvalidSettings(
            f"price of {pattern!r}: {unknown[0]!r} is not a rate; known rates: {', '.join(_RATE_NAMES)}"
        )
    if absent := [name for name in ("input", "output") if name not in rates]:
        raise InvalidSettings(f"price of {pattern!r}: {absent[0]!r} is missing; give USD per million tokens")
    found = {name: _Rate(_amount(pattern, name, value)) for name, value in rates.items()}
    return _Rates(
        input=found["input"],
        output=found["output"],
        cache_read=found.get("cache_read", found["input"]),
        cache_write=found.get("cache_write", found["input"]),
        source=f"{_CONFIGURED} {pattern}",
        one_price=_TOKENS_APART,
    )


def _amount(pattern: str, name: str, value: Decimal | float | str) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise InvalidSettings(f"price of {pattern!r}: {name} is {value!r}; give USD per million tokens, 0 or more")
    return amount / _MILLION


@lru_cache(maxsize=1024)
def _package_rates(provider: str, model: str, hour: int) -> _Rates | Cost:
    """The rates of `genai-prices` in an hour since 1970, or the unknown cost of any call, which says why."""
    try:
        from genai_prices import Usage as NoUsage  # noqa: PLC0415 - an optional package of 170 ms
        from genai_prices import calc_price  # noqa: PLC0415 - as above
    except ImportError:
        return Cost(None, "unknown: pip install 'toolcrib[prices]', or configure the model's price")
    version = metadata.version("genai-prices")
    billed = _BILLED_AS.get(provider, provider)
    try:
        at = datetime.fromtimestamp(hour * _HOUR_S, UTC)
        price = calc_price(NoUsage(), model, provider_id=billed, genai_request_timestamp=at).model_price
    except LookupError:
        return Cost(None, f"unknown: genai-prices {version} has no {provider}:{model}; configure its price")
    if price.input_mtok is None or price.output_mtok is None:
        why = f"unknown: genai-prices {version} has no token rates for {provider}:{model}; configure its price"
        return Cost(None, why)
    own = _rate(price.input_mtok)
    return _Rates(
        input=own,
        output=_rate(price.output_mtok),
        cache_read=own if price.cache_read_mtok is None else _rate(price.cache_read_mtok),
        cache_write=own if price.cache_write_mtok is None else _rate(price.cache_write_mtok),
        source=f"genai-prices {version}",
        per_call=_per_call(price.requests_kcount),
        apart=_rates_apart(price),
        one_price=_SAME_RATE | (_AUDIO_READ if billed == "google" else frozenset[str]()),
    )


_SAME_RATE = frozenset({"image_input", "image_cache_read", "video_input", "video_cache_read"})
"""What providers bill as tokens like others where the table has no rate of its own for it."""
_AUDIO_READ = frozenset({"audio_input", "audio_cache_read"})
"""Likewise, where Google is the provider."""
_TOKENS_APART = frozenset(name for name, count in PRICED_APART.items() if count.endswith("_tokens"))


def _rates_apart(price: Any) -> Mapping[str, _Rate]:
    """The rates of a model for what is billed apart from plain tokens, as far as the table has them."""
    found: dict[str, _Rate] = {}
    for name, counter in PRICED_APART.items():
        is_token = counter.endswith("_tokens")
        key = f"{counter.removesuffix('_tokens')}_mtok" if is_token else f"{counter}_kcount"
        rate = getattr(price, key) if counter else None
        if rate is not None:
            found[name] = _rate(rate) if is_token else _Rate(_per_call(rate))
    return found


def is_sold(provider: str) -> bool:
    """Whether `genai-prices` knows the prices of a provider, so that a model without one is probably not there."""
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - an optional package of 170 ms
    except ImportError:
        return False
    billed = _BILLED_AS.get(provider, provider)
    return any(known.id == billed for known in get_snapshot().providers)


class KnownModel(Struct, frozen=True):
    """What the data of `genai-prices` says of a model besides its rates; null where it says nothing."""

    model: str
    title: str | None = None
    description: str | None = None
    context_window: int | None = None
    """Tokens that it takes in and gives out at most."""
    deprecated: bool | None = None
    price_note: str | None = None


@lru_cache(maxsize=1024)
def describe_model(provider: str, model: str) -> KnownModel:
    """What the data of `genai-prices` says of a model; nothing if it does not have it, or is not installed."""
    try:
        from genai_prices import Usage as NoUsage  # noqa: PLC0415 - an optional package of 170 ms
        from genai_prices import calc_price  # noqa: PLC0415 - as above

        found = calc_price(NoUsage(), model, provider_id=_BILLED_AS.get(provider, provider))
    except (ImportError, LookupError):
        return KnownModel(model)
    known = found.model
    return KnownModel(
        model,
        title=known.name,
        description=known.description,
        context_window=known.context_window,
        deprecated=known.deprecated,
        price_note=known.price_comments,
    )


@lru_cache(maxsize=1024)
def context_window(provider: str, model: str) -> int | None:
    """Tokens that a model takes in and gives out at most, by the data of `genai-prices`; null if it does not say."""
    return describe_model(provider, model).context_window


def models_sold(provider: str) -> Sequence[str]:
    """The models of a provider that `genai-prices` has rates for input and output tokens of, by name.

    Those that are tuned for a customer are left out.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - an optional package of 170 ms
    except ImportError:
        return ()
    billed = _BILLED_AS.get(provider, provider)
    known = (model for seller in get_snapshot().providers if seller.id == billed for model in seller.models)
    return sorted(model.id for model in known if _answers_in_tokens(model) and not model.id.startswith(_TUNED))


_TUNED = "ft:"


def _answers_in_tokens(model: Any) -> bool:
    """Whether a model has rates for input and output tokens, now or at some time."""
    prices: Any = model.prices
    rates: Iterable[Any] = [each.prices for each in cast("list[Any]", prices)] if isinstance(prices, list) else [prices]
    return any(each.input_mtok is not None and each.output_mtok is not None for each in rates)


def _per_call(thousand: Any) -> Decimal:
    """The fee of one call, where a provider takes one; in the data it is per thousand calls."""
    return thousand / _THOUSAND if isinstance(thousand, Decimal) else Decimal(0)


def _rate(price: Any) -> _Rate:
    """A rate of genai-prices: a Decimal, or `TieredPrices`, per million tokens."""
    if isinstance(price, Decimal):
        return _Rate(price / _MILLION)
    tiers = sorted(((tier.start, tier.price / _MILLION) for tier in price.tiers), reverse=True)
    return _Rate(price.base / _MILLION, tuple(tiers))


_CHARACTERS_PER_TOKEN = 4


def estimate_usage(request: Request, answer: Message) -> TokenUsage:
    """The tokens of a call, by the length of what was sent and received; marked as estimated."""
    sent = estimate_tokens(request.messages, system=request.system, tools=request.tools)
    return TokenUsage(input=sent, output=tokens_of(characters_of(answer)), estimated=True)


def estimate_tokens(messages: Iterable[Message], *, system: str = "", tools: ToolSet = NO_TOOLS) -> int:
    """The tokens that a prompt comes to, by its length."""
    return tokens_of(len(system) + tools.size + sum(map(characters_of, messages)))


def tokens_of(characters: int) -> int:
    """The tokens that a text of this length comes to."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


def characters_of(message: Message) -> int:
    """The length of all that a message says to a model; a file counts as the text that costs as much."""
    size = 0
    for part in message.parts:
        if type(part) is Text:
            size += len(part.text)
        elif type(part) is ToolResult:
            size += len(part.text)
            if part.files:
                size += _CHARACTERS_PER_TOKEN * sum(map(tokens_of_file, part.files))
        elif type(part) is FilePart:
            size += _CHARACTERS_PER_TOKEN * tokens_of_file(part)
        elif type(part) is ToolCall:
            size += len(part.name) + len(part.args)
        elif type(part) is Thinking:
            size += len(part.text) + len(part.signature or "")
        elif type(part) is Opaque:
            size += len(part.raw)
    return size

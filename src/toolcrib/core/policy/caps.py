"""Caps on what many runs spend together: per realm, principal, agent or tool, in an hour, a day or a month.

    realm 50 usd/day
    principal 2 usd/hour            each principal separately
    principal=ann 5 usd/hour        this principal
    agent 5000000 tokens/month      each agent, with all that its runs call
    tool=send_mail 1000 calls/day

Caps belong to the operator; a run's own limits are a `Budget`. Amounts are reserved before a call and settled
afterwards, on counters that processes share. Spans begin at the full hour, at midnight and on the first of the month,
in UTC. If the counter is unavailable, the cap denies.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, Protocol, Self, TypeAlias, cast

from msgspec import Struct

from toolcrib.contracts import InvalidSettings, JsonObject, Reason, Run, RunRequest, Unavailable, content_hash
from toolcrib.core.policy.budget import Shortage
from toolcrib.infrastructure.store import Charge, Counters

Scope: TypeAlias = Literal["realm", "principal", "agent", "tool"]
Unit: TypeAlias = Literal["usd", "tokens", "calls"]
Span: TypeAlias = Literal["hour", "day", "month"]

BUDGET: Final = "budget"
"""The rule of a decision, and the limit of an event, that a cap is behind."""

_FORM: Final = re.compile(
    r"(realm|principal|agent|tool)(?:=(\S+))?\s+(\d{1,12}(?:\.\d{1,6})?)\s+(usd|tokens|calls)\s*/\s*(hour|day|month)"
)
_MICROS: Final = 1_000_000
_MOST: Final = 10**15
"""The most that is counted at once, a billion dollars: tools say what they cost, and counters have 64 bits."""
_LIFE: Final = timedelta(minutes=15)
"""How long what was reserved stays so if nobody settles it, because the process has died."""
_AFTERWARDS: Final = timedelta(days=1)
"""How long a counter outlives its span: what ends late is counted where it began."""


class SpendingCap(Struct, frozen=True):
    """One cap."""

    scope: Scope
    name: str | None
    """Whom it is for; null for everybody, each with a cap of their own."""
    limit: Decimal
    unit: Unit
    span: Span

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cap: `SCOPE[=NAME] LIMIT UNIT/SPAN`.

        Raises:
            InvalidSettings: The text is no cap.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            msg = f"budget {text!r} is not of the form SCOPE[=NAME] LIMIT UNIT/SPAN, such as 'realm 50 usd/day'"
            raise InvalidSettings(msg)
        scope, name, limit, unit, span = found.groups()
        if scope == "tool" and unit == "tokens":
            raise InvalidSettings(f"budget {text!r}: calls of tools use no tokens; cap those of an agent")
        return cls(cast("Scope", scope), name, Decimal(limit), cast("Unit", unit), cast("Span", span))

    def __str__(self) -> str:
        whose = self.scope if self.name is None else f"{self.scope}={self.name}"
        return f"{whose} {self.limit:f} {self.unit}/{self.span}"

    @property
    def most(self) -> int:
        """The limit as it is counted."""
        return int(self.limit * _MICROS) if self.unit == "usd" else int(self.limit)

    def to_unit(self, counted: int) -> float:
        """What was counted, in the cap's unit."""
        return counted / _MICROS if self.unit == "usd" else float(counted)

    def began(self, now: datetime) -> datetime:
        """When the present span began."""
        hour = now.replace(minute=0, second=0, microsecond=0)
        begins = {"hour": hour, "day": hour.replace(hour=0), "month": hour.replace(day=1, hour=0)}
        return begins[self.span]

    def ends(self, began: datetime) -> datetime:
        """When the span that began then ends."""
        if self.span == "month":
            return (began + timedelta(days=31)).replace(day=1)
        return began + (timedelta(hours=1) if self.span == "hour" else timedelta(days=1))


def read_caps(texts: Sequence[str]) -> tuple[SpendingCap, ...]:
    """Caps from how an operator writes them.

    Raises:
        InvalidSettings: One is no cap, or two count the same.
    """
    caps = tuple(map(SpendingCap.parse, texts))
    seen: set[object] = set()
    for cap in caps:
        counted = cap.scope, cap.name, cap.unit, cap.span
        if counted in seen:
            raise InvalidSettings(f"budget '{cap}' counts what another one counts; leave one of them out")
        seen.add(counted)
    return caps


class Spender(Struct, frozen=True):
    """Who spends."""

    realm: str
    principal: str
    """Who has started the outermost run."""
    agents: tuple[str, ...] = ()
    """Names of the tools in whose runs it happens, outermost first."""

    @classmethod
    def of(cls, request: RunRequest) -> Self:
        """The spender of what happens in a run."""
        return cls(request.principal.realm, request.starter, names_of(request.open_tools.values()))


class Spend(Struct, frozen=True):
    """What is spent, or may be at most."""

    calls: int = 0
    tokens: int = 0
    usd: Decimal | None = None
    """Null where nothing is paid, or nobody knows the price: no cap on dollars is asked then."""

    def amount(self, unit: Unit) -> int | None:
        """How much of a unit, as it is counted; null for none at all. Fractions of a millionth count as one."""
        if unit == "usd":
            return None if self.usd is None else math.ceil(min(self.usd * _MICROS, _MOST))
        return (self.tokens if unit == "tokens" else self.calls) or None


class CapReservation(Struct, frozen=True):
    """What was reserved."""

    ticket: str
    charged: tuple[tuple[SpendingCap, Charge], ...] = ()
    facts: JsonObject = {}
    """What each cap had come to before, for the decision's record."""


class Caps(Protocol):
    """All caps of a crib."""

    async def reserve(
        self, spender: Spender, ticket: str, most: Spend, *, tool: str | None = None
    ) -> "CapReservation | Shortage":
        """Set aside what may be spent at most, or say which cap does not allow it.

        Args:
            spender: Who spends it.
            ticket: Names the reservation: run and position. A second one of the name replaces the first.
            most: How much.
            tool: Name of the tool that is called, if one is.
        """
        ...

    async def settle(self, reservation: CapReservation, spent: Spend) -> None:
        """Count what was spent in the place of what was reserved; called again, count it besides."""
        ...


class CountedCaps:
    """Caps by counters.

    Args:
        caps: What is asked.
        counters: Where it is counted.
        now: The current moment.
    """

    def __init__(self, caps: Sequence[SpendingCap], counters: Counters, now: Callable[[], datetime]) -> None:
        self._caps = tuple(caps)
        self._counters = counters
        self._now = now

    async def reserve(
        self, spender: Spender, ticket: str, most: Spend, *, tool: str | None = None
    ) -> "CapReservation | Shortage":
        """Set aside what may be spent at most, or say which cap does not allow it."""
        now = self._now()
        charged = tuple(self._charges_for(spender, most, tool, now))
        if not charged:
            return CapReservation(ticket)
        charges = [charge for _, charge in charged]
        try:
            reserved = await self._counters.reserve(ticket, charges, now=now, until=now + _LIFE)
        except Unavailable as problem:
            return _unknown(charged[0][0], problem)
        if reserved.refused is not None:
            return _shortage_of(*charged[reserved.refused], reserved.used[reserved.refused], now)
        used = {str(cap): cap.to_unit(before) for (cap, _), before in zip(charged, reserved.used, strict=True)}
        return CapReservation(ticket, charged, {"budgets": used})

    async def settle(self, reservation: CapReservation, spent: Spend) -> None:
        """Count what was spent in the place of what was reserved; called again, count it besides.

        What cannot be counted now is lost: it was spent, and no reason to fail.
        """
        if reservation.charged:
            charges = [_charge(charge, spent.amount(cap.unit) or 0) for cap, charge in reservation.charged]
            with contextlib.suppress(Unavailable):
                await self._counters.settle(reservation.ticket, charges)

    def _charges_for(
        self, spender: Spender, most: Spend, tool: str | None, now: datetime
    ) -> Iterable[tuple[SpendingCap, Charge]]:
        for cap in self._caps:
            amount = most.amount(cap.unit)
            if amount is None:
                continue
            began = cap.began(now)
            for subject in _subjects(cap.scope, spender, tool):
                if cap.name in {None, subject}:
                    parts = [spender.realm, cap.scope, cap.name, subject, cap.unit, cap.span, began.isoformat()]
                    ends = cap.ends(began) + _AFTERWARDS
                    yield cap, Charge(spender.realm, spender.principal, content_hash(parts), amount, cap.most, ends)


class RunCaps:
    """The caps as they bind one run.

    Args:
        caps: All of them.
        run: Whose spending it is.
    """

    def __init__(self, caps: Caps, run: Run) -> None:
        self._caps = caps
        self._spender = Spender.of(run.request)
        self._run_id = run.run_id

    @classmethod
    def of(cls, caps: Caps | None, run: Run) -> Self | None:
        """The caps as they bind a run; null if there are none."""
        return None if caps is None else cls(caps, run)

    async def reserve(self, position: str, most: Spend) -> CapReservation | Shortage:
        """Set aside what may be spent at a position at most, or say which cap does not allow it."""
        return await self._caps.reserve(self._spender, f"{self._run_id}/{position}", most)

    async def settle(self, reservation: CapReservation, spent: Spend) -> None:
        """Count what was spent in the place of what was reserved."""
        await self._caps.settle(reservation, spent)


def names_of(refs: Iterable[str]) -> tuple[str, ...]:
    """The names of `name@version`s, each once, in order."""
    return tuple(dict.fromkeys(ref.partition("@")[0] for ref in refs))


def _subjects(scope: Scope, spender: Spender, tool: str | None) -> tuple[str, ...]:
    subjects: Mapping[Scope, tuple[str, ...]] = {
        "realm": (spender.realm,),
        "principal": (spender.principal,),
        "agent": spender.agents,
        "tool": () if tool is None else (tool,),
    }
    return subjects[scope]


def _charge(charge: Charge, amount: int) -> Charge:
    return Charge(charge.realm, charge.made_by, charge.key, amount, charge.limit, charge.expires_at)


def _shortage_of(cap: SpendingCap, charge: Charge, used: int, now: datetime) -> Shortage:
    free = cap.ends(cap.began(now))
    message = (
        f"budget '{cap}' has {cap.to_unit(used):.12g} {cap.unit} used or reserved, and this may take "
        f"{cap.to_unit(charge.amount):.12g}; it resets at {free:%Y-%m-%dT%H:%MZ}, or raise the setting `budgets`"
    )
    return Shortage(
        BUDGET,
        cap.to_unit(used + charge.amount),
        cap.to_unit(cap.most),
        Reason.BUDGET_EXCEEDED,
        "policy",
        text=message,
        free_in_s=(free - now).total_seconds(),
    )


def _unknown(cap: SpendingCap, problem: Unavailable) -> Shortage:
    message = f"budget '{cap}' cannot be asked, so nothing may be spent: {problem}"
    return Shortage(BUDGET, 0, 0, Reason.BUDGET_UNKNOWN, "policy", text=message)

"""Fill an empty CRM: the same seed gives the same rows, byte for byte, on every machine and day.

The data holds the traps that a careless client falls into: deals named after Acme Corp that belong to others, companies
with similar names, stage labels that two pipelines share, ids that do not resemble labels, values that are missing.
"""

import random
import sqlite3
import unicodedata
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any, Final

from examples.crm import names
from examples.crm.values import format_timestamp

ACME: Final = "Acme Corp"
ACME_DEALS: Final = 237
DEALS: Final = 5_000
COMPANIES: Final = 400
CONTACTS: Final = 1_200
OWNERS: Final = 25

TODAY: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
"""The day on which the data ends."""

_OLDEST: Final = 540
"""Days before `TODAY` on which the first deals were made."""

_FIRST_OWNER, _FIRST_COMPANY, _FIRST_CONTACT, _FIRST_DEAL = 501, 70_001, 310_001, 4_100_001

Row = tuple[Any, ...]
Pipelines = dict[str, Sequence[str]]
"""The stage ids of each pipeline id."""


def populate(connection: sqlite3.Connection, seed: int) -> None:
    """Insert all rows; the caller holds the transaction."""
    rng = random.Random(seed)
    pipelines = _insert_pipelines(connection, rng)
    connection.executemany("INSERT INTO owners VALUES (?, ?, ?)", _owners(rng))
    companies = _companies(rng)
    connection.executemany("INSERT INTO companies VALUES (?, ?, ?, ?, ?, ?, ?, ?)", companies)
    connection.executemany("INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?, ?)", _contacts(rng, companies))
    deals = _deals(rng, companies, pipelines)
    connection.executemany("INSERT INTO deals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)", deals)


def _insert_pipelines(connection: sqlite3.Connection, rng: random.Random) -> Pipelines:
    codes = [f"{code:04x}" for code in rng.sample(range(0x1000, 0x10000), 32)]
    made: Pipelines = {}
    for order, (label, stages) in enumerate(names.PIPELINES.items()):
        pipeline = f"pip_{codes.pop()}"
        connection.execute("INSERT INTO pipelines VALUES (?, ?, ?)", (pipeline, label, order))
        made[pipeline] = [f"stg_{codes.pop()}" for _ in stages]
        rows = [
            (stage, pipeline, stage_label, place, int(closed))
            for place, (stage, (stage_label, closed)) in enumerate(zip(made[pipeline], stages, strict=True))
        ]
        connection.executemany("INSERT INTO stages VALUES (?, ?, ?, ?, ?)", rows)
    return made


def _owners(rng: random.Random) -> list[Row]:
    people = rng.sample(list(product(names.FIRST_NAMES, names.LAST_NAMES)), OWNERS)
    return [
        (_FIRST_OWNER + place, f"{first} {last}", f"{_slug(first)}.{_slug(last)}@crm.example")
        for place, (first, last) in enumerate(people)
    ]


def _companies(rng: random.Random) -> list[Row]:
    titles = [ACME, *names.FAMILIAR_COMPANIES]
    combinations = [" ".join(pair) for pair in product(names.COMPANY_FIRST, names.COMPANY_SECOND)]
    titles += rng.sample(combinations, COMPANIES - len(titles))
    rng.shuffle(titles)
    return [
        (
            _FIRST_COMPANY + place,
            title,
            f"{_slug(title)}.example",
            rng.choice(names.INDUSTRIES),
            rng.choice(names.CITIES),
            int(rng.lognormvariate(5, 1.2)) + 3,
            _FIRST_OWNER + rng.randrange(OWNERS),
            format_timestamp(TODAY - timedelta(days=rng.randint(_OLDEST, 2 * _OLDEST), minutes=rng.randrange(1440))),
        )
        for place, title in enumerate(titles)
    ]


def _contacts(rng: random.Random, companies: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for place in range(CONTACTS):
        first, last = rng.choice(names.FIRST_NAMES), rng.choice(names.LAST_NAMES)
        company = companies[place] if place < len(companies) else rng.choice(companies)
        row_id = _FIRST_CONTACT + place
        email = f"{_slug(first)}.{_slug(last)}.{row_id}@{company[2]}"
        made = format_timestamp(TODAY - timedelta(days=rng.randrange(1, _OLDEST), minutes=rng.randrange(1440)))
        rows.append((row_id, first, last, email, rng.choice(names.JOB_TITLES), company[0], made))
    return rows


def _deals(rng: random.Random, companies: Sequence[Row], pipelines: Pipelines) -> list[Row]:
    sales, *_ = pipelines
    customers = _customers(rng, companies)
    acme_stages = _spread(rng, pipelines[sales], ACME_DEALS)
    decoys = dict(zip(_decoy_places(rng, customers), names.DECOY_DEALS, strict=True))
    rows: list[Row] = []
    for place, company in enumerate(customers):
        if company[1] == ACME:
            pipeline, stage = sales, acme_stages.pop()
        else:
            pipeline = rng.choices(list(pipelines), weights=(3, 1))[0]
            stage = rng.choice(pipelines[pipeline])
        title = decoys.get(place) or _deal_name(rng, company[1])
        made = TODAY - timedelta(days=rng.randrange(1, _OLDEST), minutes=rng.randrange(1440))
        touched = made + (TODAY - made) * rng.random()
        cents = None if rng.random() < 0.04 else _amount(rng)
        closes = None if rng.random() < 0.03 else _close_date(rng, made)
        owner = None if rng.random() < 0.03 else _FIRST_OWNER + rng.randrange(OWNERS)
        stamps = (format_timestamp(made), format_timestamp(touched))
        rows.append((_FIRST_DEAL + place, title, cents, pipeline, stage, closes, owner, company[0], *stamps))
    return rows


def _customers(rng: random.Random, companies: Sequence[Row]) -> list[Row]:
    """The company of every deal, in the order of the deals."""
    fixed = {ACME: ACME_DEALS, **names.FAMILIAR_COMPANIES}
    customers = [company for company in companies for _ in range(fixed.get(company[1], 0))]
    others = [company for company in companies if company[1] not in fixed]
    weights = [rng.lognormvariate(0, 0.7) for _ in others]
    customers += rng.choices(others, weights=weights, k=DEALS - len(customers))
    rng.shuffle(customers)
    return customers


def _spread(rng: random.Random, stages: Sequence[str], count: int) -> list[str]:
    """`count` stages in random order, each of them at least once."""
    spread = [*stages, *rng.choices(stages, k=count - len(stages))]
    rng.shuffle(spread)
    return spread


def _decoy_places(rng: random.Random, customers: Sequence[Row]) -> list[int]:
    """Which deals get a misleading name: one of each company with a similar name, and some of others."""
    others = [place for place, company in enumerate(customers) if company[1] != ACME]
    similar = [
        next(place for place in others if customers[place][1] == title) for title in ("Acme Motors", "Corp of Acme")
    ]
    rest = [place for place in others if place not in similar]
    return similar + rng.sample(rest, len(names.DECOY_DEALS) - len(similar))


def _deal_name(rng: random.Random, company: str) -> str:
    subject = f"{rng.choice(names.PRODUCTS)} {rng.choice(names.OCCASIONS)}"
    return f"{company}: {subject}" if rng.random() < 0.4 else f"{subject} {rng.choice((2024, 2025, 2026))}"


def _amount(rng: random.Random) -> int:
    dollars = int(rng.lognormvariate(9.3, 0.9))
    return dollars * 100 + (rng.choice((25, 50, 90, 99)) if rng.random() < 0.1 else 0)


def _close_date(rng: random.Random, made: datetime) -> str:
    day: date = (made + timedelta(days=rng.randint(15, 200))).date()
    return day.isoformat()


def _slug(text: str) -> str:
    """The text in the characters of host names."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", errors="ignore").decode()
    return "-".join(plain.lower().replace("'", "").split())

"""Made-up tools as a store keeps them: five hundred providers, sixteen verbs, sixty things."""

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

from toolcrib.contracts import ToolDefinition
from toolcrib.infrastructure.store import Definition
from toolcrib.kinds.http.shape import HttpImplementation

NOW = datetime(2026, 11, 22, tzinfo=UTC)
WORDS = """
deal contact company invoice payment order ticket user channel message file repo issue branch commit product price
customer lead quote task project calendar event note email phone address report metric alert incident deploy build job
queue stream topic policy secret key role group team budget refund dispute coupon plan page form survey answer label
folder share comment review release asset
"""
ACTIONS = """
list get create update delete search count archive restore export import sync merge assign approve
"""
THINGS, VERBS = WORDS.split(), ACTIONS.split()


def stored(count: int) -> Iterator[Definition]:
    """So many tools, always the same."""
    random = Random(1)
    for number in range(count):
        provider, verb = f"p{number % 500}", random.choice(VERBS)
        first, second = random.choice(THINGS), random.choice(THINGS)
        said = f"{verb.title()} the {first} of a {second}. {' '.join(random.choices(THINGS, k=20))}."
        definition = ToolDefinition(
            name=f"{provider}_{verb}_{first}_{second}_{number}",
            description=said,
            category=provider,
            tags=(first, second),
            side_effects="reads",
            input_schema={
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": f"The {name}."} for name in random.sample(THINGS, 6)
                },
            },
            implementation=HttpImplementation(method="GET", url=f"https://{provider}.example/{first}/{number}"),
        )
        yield Definition(
            kind="tool",
            realm="default",
            name=definition.name,
            version=definition.version,
            revision=0,
            content_hash=definition.content_hash(),
            body=definition.model_dump(mode="json"),
            made_by="benchmark",
            created_at=NOW,
        )

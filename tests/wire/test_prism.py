"""Tools of imported documents against a mock server that refuses what does not meet the document: nothing is refused.

Prism validates paths, parameters, bodies and credentials, and knows nothing of ours. The public documents are held
against it as far as they are on this machine; a document of our own always is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.wire.arguments import arguments
from tests.wire.prism import mocking
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import ToolDefinition, ToolEnvelope

pytestmark = [pytest.mark.requirement("providers.requests_are_valid"), pytest.mark.slow]

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openapi"
PUBLIC = ("hubspot_crm_contacts_v3", "hubspot_crm_deals_v3", "hubspot_crm_associations_v4", "slack_web_swagger2")
SAMPLED = 80
"""Operations of each document in the ordinary run."""
SECRET = "s3cret-t0ken"

OWN: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Deals", "version": "1"},
    "servers": [{"url": "https://deals.example"}],
    "security": [{"key": []}],
    "paths": {
        "/deals/{id}": {
            "get": {
                "operationId": "getDeal",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}},
                    {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"enum": ["id", "name"]}}},
                    {
                        "name": "filter",
                        "in": "query",
                        "style": "deepObject",
                        "explode": True,
                        "schema": {"type": "object", "properties": {"stage": {"type": "string"}}},
                    },
                    {"name": "X-Trace", "in": "header", "required": True, "schema": {"type": "string", "minLength": 4}},
                ],
                "responses": {"200": {"description": "ok"}},
            }
        },
        "/deals": {
            "post": {
                "operationId": "addDeal",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Deal"}}},
                },
                "responses": {"201": {"description": "made"}},
            }
        },
        "/notes": {
            "post": {
                "operationId": "addNote",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "required": ["text", "times"],
                                "properties": {"text": {"type": "string"}, "times": {"type": "integer", "maximum": 3}},
                            }
                        }
                    },
                },
                "responses": {"201": {"description": "made"}},
            }
        },
    },
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "schemas": {
            "Deal": {
                "type": "object",
                "required": ["name", "stage"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "pattern": "^[A-Z]"},
                    "stage": {"enum": ["open", "won"]},
                    "amount": {"type": "number", "minimum": 0, "nullable": True},
                    "parent": {"$ref": "#/components/schemas/Deal"},
                },
            }
        },
    },
}  # fmt: skip


@dataclass(frozen=True)
class Refused:
    """A call that the mock server did not take."""

    tool: str
    given: Any
    envelope: ToolEnvelope


async def refusals(document: Any, folder: Path, seeds: Sequence[int], most: int | None = None) -> list[Refused]:
    """Call every operation, or a sample, once per seed; returns what was answered with 4xx, or never sent."""
    found: list[Refused] = []
    async with mocking(document, folder) as base:
        policy = EgressPolicy(allow=(base.removeprefix("http://"),))
        async with Crib("memory://", egress=policy, environment=_AnySecret()) as crib:
            imported = await crib.imports.openapi(document, name="api", base_url=base)
            for tool in sample(imported.tools, most):
                for seed in seeds:
                    given = arguments(tool.input_schema, seed)
                    envelope = await crib.call(tool.name, given)
                    if envelope.http_status is None or 400 <= envelope.http_status < 500:
                        found.append(Refused(tool.name, given, envelope))
    return found


class _AnySecret(dict[str, str]):
    """An environment in which every variable of the provider is set."""

    def __contains__(self, name: object) -> bool:
        return re.match(r"API(_|$)", str(name)) is not None

    def __missing__(self, name: str) -> str:
        if name in self:
            return SECRET
        raise KeyError(name)

    def get(self, key: str, default: Any = None) -> Any:
        return SECRET if key in self else default


def sample(tools: Sequence[ToolDefinition], most: int | None) -> Sequence[ToolDefinition]:
    """So many tools, evenly spread."""
    return tools if most is None else tools[:: max(1, len(tools) // most)]


def public(name: str) -> Any:
    """A public document."""
    file = FOLDER / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"the collection of public documents is not at {FOLDER}")
    return orjson.loads(file.read_bytes())


async def test_the_mock_server_refuses_what_does_not_meet_its_document(tmp_path: Path) -> None:
    async with mocking(OWN, tmp_path) as base:
        policy = EgressPolicy(allow=(base.removeprefix("http://"),))
        lenient = orjson.loads(orjson.dumps(OWN).replace(b'"pattern":"^[A-Z]"', b'"type":"string"'))
        async with Crib("memory://", egress=policy, environment=_AnySecret()) as crib:
            await crib.imports.openapi(lenient, name="api", base_url=base)
            assert (await crib.call("addDeal", name="acme", stage="won")).http_status == 422
            assert (await crib.call("addDeal", name="Acme", stage="won")).http_status == 201


async def test_no_request_of_our_own_document_is_malformed(tmp_path: Path) -> None:
    assert await refusals(OWN, tmp_path, range(8)) == []


@pytest.mark.parametrize("name", PUBLIC)
async def test_no_sampled_request_of_a_public_document_is_malformed(name: str, tmp_path: Path) -> None:
    assert await refusals(public(name), tmp_path, (0, 1), SAMPLED) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", PUBLIC)
async def test_no_request_of_a_public_document_is_malformed(name: str, tmp_path: Path) -> None:
    assert await refusals(public(name), tmp_path, range(6)) == []

"""A client for the CRM's tests that holds every response against the CRM's own OpenAPI document."""

import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
from aiohttp.test_utils import TestClient
from multidict import CIMultiDictProxy

from examples.crm.document import load_document

TOKEN = "crm_test-token"

DOCUMENT = cast("dict[str, Any]", load_document())


@dataclass
class ManualClock:
    """Time that stands still until a test moves it."""

    seconds: float = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def utc(self) -> datetime:
        return datetime(2026, 3, 3, tzinfo=UTC) + timedelta(seconds=self.seconds)


@dataclass(frozen=True)
class Answer:
    """A response whose agreement with the document has been checked."""

    status: int
    headers: CIMultiDictProxy[str]
    body: Any

    @property
    def error(self) -> dict[str, Any]:
        return self.body["error"]

    @property
    def details(self) -> list[dict[str, Any]]:
        return self.error["details"]

    @property
    def ids(self) -> list[str]:
        return [result["id"] for result in self.body["results"]]


@dataclass
class Crm:
    """A running CRM and its database."""

    client: TestClient[Any, Any]
    db: Path
    clock: ManualClock
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {TOKEN}"})

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {**self.headers, **(headers or {}), **({"Idempotency-Key": key} if key is not None else {})}
        text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        async with self.client.request(method, path, data=BytesIO(text) if text else None, headers=sent) as response:
            received = await response.text()
            answer = Answer(response.status, response.headers, json.loads(received) if received else None)
        check_against_document(method, path, answer)
        return answer

    async def search(self, *filters: Mapping[str, Any], **members: Any) -> Answer:
        groups = [{"filters": list(filters)}] if filters else []
        return await self.send("POST", "/crm/v1/deals/search", {"filter_groups": groups, **members})

    async def patch(self, deal: str, properties: Mapping[str, Any], **options: Any) -> Answer:
        return await self.send("PATCH", f"/crm/v1/deals/{deal}", {"properties": properties}, **options)

    async def batch(self, inputs: list[Any], *, key: str | None = None) -> Answer:
        return await self.send("POST", "/crm/v1/deals/batch/update", {"inputs": inputs}, key=key)

    async def deal(self, deal: str) -> dict[str, Any]:
        return (await self.send("GET", f"/crm/v1/deals/{deal}")).body

    async def stages(self, pipeline: str = "Sales") -> dict[str, str]:
        """The ids of a pipeline's stages by their labels."""
        answer = await self.send("GET", "/crm/v1/pipelines")
        [found] = [entry for entry in answer.body["results"] if entry["label"] == pipeline]
        return {stage["label"]: stage["id"] for stage in found["stages"]}

    async def some_deals(self, count: int, **members: Any) -> list[str]:
        return (await self.search(limit=count, **members)).ids

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """What another process would read from the file."""
        connection = sqlite3.connect(self.db)
        try:
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()


def where(name: str, operator: str, value: Any = None, **more: Any) -> dict[str, Any]:
    """A filter of a search."""
    return {"property": name, "operator": operator, **({} if value is None else {"value": value}), **more}


def validator(schema: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """A validator for a schema that may refer to the document's components."""
    return jsonschema_rs.Draft202012Validator({**schema, "components": DOCUMENT["components"]}, validate_formats=True)


def operation_at(method: str, path: str) -> dict[str, Any] | None:
    """The document's operation for a request, if it has one."""
    exact = sorted(DOCUMENT["paths"].items(), key=lambda entry: "{" in entry[0])
    for template, item in exact:
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in item:
            return item[method.lower()]
    return None


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    """The node, or the one of the document that its $ref names."""
    while "$ref" in node:
        found: Any = DOCUMENT
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def check_against_document(method: str, path: str, answer: Answer) -> None:
    """Fail unless the document promises such an answer."""
    operation = operation_at(method, path)
    if operation is None:
        return
    assert str(answer.status) in operation["responses"], f"{method} {path}: {answer.status} is not in the document"
    response = resolve(operation["responses"][str(answer.status)])
    for name, header in response.get("headers", {}).items():
        if name in answer.headers:
            validator(resolve(header)["schema"]).validate(answer.headers[name])
    if "content" in response:
        assert answer.headers["Content-Type"].startswith("application/json")
        validator(response["content"]["application/json"]["schema"]).validate(answer.body)
    else:
        assert answer.body is None

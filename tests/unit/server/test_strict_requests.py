"""Requests that say what the server does not know, or what JSON cannot say."""

import pytest

from tests.unit.server.client import serving


@pytest.mark.requirement("server.query_parameters")
@pytest.mark.parametrize(
    ("path", "name", "has"),
    [
        ("/ai/tools", "limt", "it has: access, after, "),
        ("/ai/agents/count", "kind", "it has: "),
        ("/executions", "x", "it has: "),
    ],
)
async def test_an_unknown_query_parameter_is_refused_with_those_that_there_are(path: str, name: str, has: str):
    async with serving() as server:
        refused = await server.get(path, {name: "5"}, 422)
    assert f"there is no query parameter '{name}' here; {has}" in refused["detail"]


@pytest.mark.requirement("server.query_parameters")
async def test_every_known_query_parameter_is_taken():
    async with serving() as server:
        page = await server.get("/ai/tools", {"limit": 5, "q": "nothing like it", "after": "a"})
        count = await server.get("/ai/agents/count", {"text": "x"})
    assert (page["items"], count["count"]) == ([], 0)


@pytest.mark.requirement("server.finite_numbers")
async def test_a_number_that_is_too_large_is_refused_and_never_null():
    async with serving() as server:
        for text in ("1e999", "-1e999", "NaN"):
            body = f'{{"input": {{"amounts": [1, {text}]}}}}'
            refused = await server.client.post(
                "/api/v1/ai/tools/search/execute", content=body, headers={"content-type": "application/json"}
            )
            assert refused.status_code == 422
            assert "null" not in refused.text

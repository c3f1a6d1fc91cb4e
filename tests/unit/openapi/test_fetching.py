"""Documents that refer to others, over addresses."""

import pytest

from toolcrib.contracts import InvalidDefinition, NotFound
from toolcrib.kinds.http.openapi import Bounds, fetch_documents, import_openapi
from toolcrib.kinds.http.openapi.read.documents import MAX_DOCUMENTS

pytestmark = pytest.mark.requirement("providers.references_fetched")

MAIN = "https://api.test/docs/openapi.yaml"
HEAD = "openapi: 3.1.0\ninfo: {title: T, version: '1'}\nservers: [{url: /v1}]\n"


class Web:
    """An in-memory web that remembers what it was asked for."""

    def __init__(self, **pages: str) -> None:
        self.pages = {MAIN: "", **pages}
        self.asked: list[str] = []

    async def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if url not in self.pages:
            raise NotFound(f"nothing at {url}")
        return self.pages[url].encode()


def web(paths: str, **pages: str) -> Web:
    found = Web()
    found.pages = {MAIN: HEAD + paths, **{f"https://api.test/docs/{name}.yaml": text for name, text in pages.items()}}
    return found


async def test_documents_that_are_referred_to_are_fetched_and_their_parts_used() -> None:
    content = "{application/json: {schema: {$ref: 'deal.yaml#/Deal'}}}"
    item = f"get: {{responses: {{'200': {{description: d, content: {content}}}}}}}"
    source = web(
        "paths: {/deals: {$ref: './item.yaml'}}",
        item=item,
        deal="Deal: {type: object, properties: {next: {$ref: '#/Deal'}, item: {$ref: 'item.yaml#/nothing'}}}",
    )
    documents = await fetch_documents(MAIN, source.fetch)
    assert source.asked == [MAIN, "https://api.test/docs/item.yaml", "https://api.test/docs/deal.yaml"]
    api = import_openapi(documents[MAIN], name="api", uri=MAIN, documents=documents)
    (tool,) = api.tools
    assert tool.output_schema == {
        "$ref": "#/$defs/Deal",
        "$defs": {"Deal": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Deal"}, "item": {}}}},
    }
    assert api.provider.base_url == "https://api.test/v1"
    (place,) = (place for loss in api.losses if loss.kind == "reference" for place in loss.places)
    assert place == "https://api.test/docs/deal.yaml#/Deal/properties/item/$ref"


async def test_other_origins_are_not_asked_unless_the_caller_allows_them() -> None:
    source = web("paths: {/a: {$ref: 'https://evil.test/a.yaml'}, /b: {$ref: 'https://[x'}, /c: {$ref: 'gone.yaml'}}")
    documents = await fetch_documents(MAIN, source.fetch)
    assert source.asked == [MAIN, "https://api.test/docs/gone.yaml"]
    api = import_openapi(documents[MAIN], name="api", uri=MAIN, documents=documents)
    assert api.tools == ()
    assert {loss.what for loss in api.losses if loss.kind == "reference"} == {
        "reference 'https://evil.test/a.yaml'",
        "reference 'https://[x'",
        "reference 'gone.yaml'",
    }
    await fetch_documents(MAIN, source.fetch, origins=["https://evil.test"])
    assert "https://evil.test/a.yaml" in source.asked


async def test_what_is_fetched_is_bounded_in_number_and_size_and_circles_end() -> None:
    many = "".join(f"/{number}: {{$ref: 'n.yaml?{number}'}}, " for number in range(2 * MAX_DOCUMENTS))
    source = web(f"paths: {{{many}/self: {{$ref: 'openapi.yaml#/paths'}}}}")
    assert list(await fetch_documents(MAIN, source.fetch)) == [MAIN]
    assert len(source.asked) == MAX_DOCUMENTS

    large = web("paths: {/a: {$ref: 'a.yaml'}}", a="# " + "x" * 200)
    assert list(await fetch_documents(MAIN, large.fetch, bounds=Bounds(max_bytes=200))) == [MAIN]
    with pytest.raises(InvalidDefinition, match="the limit is 20"):
        await fetch_documents(MAIN, large.fetch, bounds=Bounds(max_bytes=20))


async def test_a_main_document_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFound):
        await fetch_documents("https://api.test/nothing", Web().fetch)

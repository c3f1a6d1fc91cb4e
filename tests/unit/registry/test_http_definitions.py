"""HTTP operations and providers that could not be called are refused when they are saved."""

from typing import Any

import pytest

from tests.twins import AT, make_definition
from toolcrib.contracts import (
    BearerAuth,
    InvalidDefinition,
    OAuth2Auth,
    ProviderDefinition,
    ServerVariable,
    ToolDefinition,
)
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.catalog.unversioned_definitions import Providers
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.dispatch import check_tool
from toolcrib.kinds.http.shape import (
    CursorPaging,
    FieldEncoding,
    HttpBody,
    HttpImplementation,
    HttpParameter,
    LinkPaging,
    NextUrlPaging,
    OffsetPaging,
    PageNumberPaging,
)

OAUTH: dict[str, Any] = {"client_id": "${env:A}", "client_secret": "${env:B}"}


def taken(name: str) -> HttpParameter:
    return HttpParameter(name=name, argument=name, place="query")


def operation(**changes: Any) -> ToolDefinition:
    fields: dict[str, Any] = {"method": "GET", "url": "https://api.test/deals", "provider": "crm"}
    stage: dict[str, Any] = {"type": "object", "properties": {"stage": {}}}
    return make_definition("deals", input_schema=stage, implementation=HttpImplementation(**fields | changes))


def provider(**changes: Any) -> ProviderDefinition:
    fields: dict[str, Any] = {"name": "crm", "base_url": "https://api.test/v1"}
    return ProviderDefinition(**fields | changes)


@pytest.mark.requirement("registry.http_checked")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"url": "/deals"},
        {"url": "https://{region}.api.test/{version}/deals/{id}?x=1#y"},
        {"body": HttpBody(content_type="application/json; charset=utf-8", fields={"a": "a"})},
        {"body": HttpBody(content_type="application/vnd.odd", argument="body")},
        {
            "body": HttpBody(
                content_type="multipart/form-data; boundary=x",
                encoding="multipart",
                fields={"a": "b"},
                encodings={"b": FieldEncoding(file=True)},
            )
        },
        {"body": HttpBody(content_type="a/b", encoding="binary", argument="body")},
        {"headers": {"X-Api-Version": "2"}},
        {"body": HttpBody(template={"data": {"type": "deals", "stage": {"$argument": "stage"}, "$set": [1, None]}})},
        {
            "body": HttpBody(template={"rows": [{"$argument": "stage"}]}),
            "paging": CursorPaging(cursor_in="/stage/after", cursor_out="$.next"),
        },
        {"paging": LinkPaging()},
        {"paging": NextUrlPaging(url_out="$.next", items="$.data['x-rows']")},
        {
            "body": HttpBody(argument="body"),
            "paging": CursorPaging(cursor_in="/body/a~1b", cursor_out="header:X-Next", items="rows"),
        },
        {
            "parameters": (
                taken("p"),
                HttpParameter(name="p", argument="q", place="cookie"),
            ),
            "paging": PageNumberPaging(argument="p", total="$.n", total_pages="$.m"),
        },
    ],
)
def test_an_operation_that_can_be_called_is_accepted(changes: Any) -> None:
    check_tool(operation(**changes))


@pytest.mark.requirement("registry.http_checked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"url": "ftp://api.test/"}, "url 'ftp://api.test/' is neither absolute"),
        ({"url": "//api.test/"}, "is neither absolute"),
        ({"url": "https://a b/"}, "is neither absolute"),
        ({"url": "https://a.test/\n"}, "is neither absolute"),
        ({"url": "/deals", "provider": None}, "there is no provider to have one; make it absolute"),
        (
            {
                "parameters": (
                    HttpParameter(name="A", argument="A", place="header"),
                    HttpParameter(name="a", argument="a", place="header"),
                )
            },
            "two parameters are called 'a' in the header",
        ),
        ({"headers": {"X Y": "1"}}, "headers has 'X Y', which is not a valid header name; correct it"),
        ({"headers": {"Content-Type": "a/b"}}, "'Content-Type', which follows from the URL and the body; take it away"),
        ({"headers": {"X-Api-Key": "k"}}, "'X-Api-Key' would hold a credential; give it as the provider's auth"),
        ({"headers": {"X-A": "${env:CRM}"}}, "'X-A' would hold a credential; give it as the provider's auth"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "the header 'X-A' has a line break or another control character"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers has 'x-a' twice, in other letters; take one away"),
        (
            {"body": HttpBody(template={"a": [{"b": {"$argument": "stge"}}]})},
            "names the argument 'stge', which input_schema does not have; did you mean 'stage'? it takes stage",
        ),
        ({"body": HttpBody(template={"a": {"$argument": 1}})}, '"$argument" without the name of one'),
        ({"body": HttpBody(template=[{"$argument": "stage", "b": 1}])}, "with nothing else in the object"),
        (
            {"body": HttpBody(template={}, fields={"stage": "stage"})},
            "the body has a template and an argument or fields; it is made in one way",
        ),
        (
            {"body": HttpBody(template={}, encoding="form", content_type="application/x-www-form-urlencoded")},
            "body.template makes JSON, and this body is 'form'; use fields or an argument",
        ),
        ({"body": HttpBody(argument="a", fields={"b": "b"})}, "the body has an argument and fields"),
        ({"body": HttpBody(content_type="text/plain", encoding="text")}, "is one argument; name it in body.argument"),
        ({"body": HttpBody(content_type="text/plain", encoding="form")}, "has a content type application/x-www-form"),
        ({"body": HttpBody(content_type="Multipart/Form-Data")}, "give it the encoding 'multipart'"),
        ({"body": HttpBody(encodings={"a": FieldEncoding()})}, "body.encodings is for forms and multipart bodies"),
        (
            {
                "body": HttpBody(
                    content_type="multipart/form-data",
                    encoding="multipart",
                    fields={"a": "b"},
                    encodings={"a": FieldEncoding()},
                )
            },
            "body.encodings names 'a', which is not a field on the wire",
        ),
        ({"paging": OffsetPaging(argument="skip")}, "paging uses the argument 'skip', which no parameter"),
        ({"paging": LinkPaging(limit_argument="limit")}, "paging uses the argument 'limit'"),
        ({"paging": CursorPaging(cursor_in="/body/after", cursor_out="$.a")}, "paging uses the argument 'body'"),
        ({"paging": LinkPaging(items="$.a[0]")}, "a path to it has names only"),
        ({"paging": NextUrlPaging(url_out="next")}, "paging has the path 'next', which cannot be applied"),
    ],
)
def test_an_operation_that_could_not_be_called_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(InvalidDefinition, match="tool 'deals': ") as caught:
        check_tool(operation(**changes))
    assert message in str(caught.value)


@pytest.mark.requirement("registry.defaults_checked")
@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"a": {"type": "integer", "default": "x"}}, "/a"),
        ({"a": {"enum": ["x"], "default": "y"}}, "/a"),
        ({"a": {"type": "object", "default": {"b": 1}, "properties": {"b": {"type": "string"}}}}, "/a"),
        ({"a": {"properties": {"b~/": {"type": "integer", "default": None}}}}, "/a/b~0~1"),
        ({"a": {"$ref": "#/$defs/D"}}, "/a/n"),
    ],
)
async def test_a_default_that_the_schema_refuses_is_refused(properties: Any, place: str) -> None:
    defs = {"D": {"properties": {"n": {"type": "integer", "default": 1.5}, "d": {"$ref": "#/$defs/D"}}}}
    schema = {"type": "object", "properties": properties, "required": ["z"], "$defs": defs}
    definition = operation().model_copy(update={"input_schema": schema})
    registry = Registry(MemoryStore().definitions)
    with pytest.raises(InvalidDefinition, match=f"the default of {place} in input_schema is not valid: .*; correct it"):
        await registry.save(definition, realm="default", made_by="owner", at=AT)
    assert registry.names("default") == []


@pytest.mark.requirement("registry.defaults_checked")
def test_valid_defaults_are_accepted_also_in_circular_schemas() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "n": {"type": "integer", "default": 1}}}
    schema = {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}, "a": True}, "$defs": {"Node": node}}
    check_tool(operation().model_copy(update={"input_schema": schema}))


@pytest.mark.requirement("registry.http_checked")
def test_the_arguments_of_a_template_are_not_compared_with_a_schema_that_names_them_elsewhere() -> None:
    tool = operation(body=HttpBody(template={"a": {"$argument": "b"}}))
    check_tool(tool.model_copy(update={"input_schema": {"type": "object", "patternProperties": {"^b": {}}}}))


@pytest.mark.requirement("registry.providers_checked")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "base_url": "https://{region}.api.test",
            "variables": {"region": ServerVariable(default="eu", enum=("eu", "us"))},
        },
        {"auth": OAuth2Auth(token_url="https://auth.test/token", **OAUTH)},
        {"schemes": {"b": BearerAuth(token="${env:T}")}, "security": ({"b": ()},)},
    ],
)
async def test_a_provider_that_can_be_used_is_stored(changes: Any) -> None:
    providers = Providers(MemoryStore().definitions)
    await providers.save(provider(**changes), realm="default", made_by="owner", at=AT)
    assert providers.find("default", "crm") == provider(**changes)
    await providers.refresh("default")
    assert providers.find("default", "crm") == provider(**changes)


@pytest.mark.requirement("registry.providers_checked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "api.test"}, "base_url 'api.test' is not absolute"),
        ({"base_url": "https://{region}.api.test"}, "base_url holds {region}, which its variables do not have"),
        (
            {
                "base_url": "https://{r}.api.test",
                "variables": {"r": ServerVariable(default="eu", value="evil.test/", enum=("eu",))},
            },
            "variable 'r' is 'evil.test/'; it may be eu",
        ),
        ({"security": ({"b": ()},)}, "security needs 'b', which its schemes do not have: it has no schemes"),
        ({"auth": OAuth2Auth(**OAUTH)}, "auth: give either token_url or discovery_url"),
        (
            {"schemes": {"o": OAuth2Auth(token_url="https://a.test", discovery_url="https://a.test", **OAUTH)}},
            "o: give either token_url or discovery_url",
        ),
        ({"auth": OAuth2Auth(token_url="/token", **OAUTH)}, "auth: '/token' is not absolute"),
        (
            {"auth": OAuth2Auth(token_url="https://a.test", grant="refresh_token", **OAUTH)},
            "the grant refresh_token needs a refresh_token",
        ),
        (
            {"auth": OAuth2Auth(token_url="https://a.test", client_id="${env:A}")},
            "the grant client_credentials needs a client_secret",
        ),
    ],
)
async def test_a_provider_that_could_not_be_used_is_refused(changes: Any, message: str) -> None:
    providers = Providers(MemoryStore().definitions)
    with pytest.raises(InvalidDefinition, match="provider 'crm': ") as caught:
        await providers.save(provider(**changes), realm="default", made_by="owner", at=AT)
    assert message in str(caught.value)
    assert providers.find("default", "crm") is None

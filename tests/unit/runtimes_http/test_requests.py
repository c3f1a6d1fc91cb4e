"""What arrives at a service when a tool is called."""

from typing import Any
from urllib.parse import unquote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins import make_definition
from tests.unit.runtimes_http.service import BEARER, TOKEN, Service, parameter, service
from toolcrib.contracts import ApiKeyAuth, BearerAuth, ErrorCode, Reason
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import Credentials
from toolcrib.kinds.http.runtime.bodies import write_body
from toolcrib.kinds.http.runtime.requests import Target, build_request
from toolcrib.kinds.http.shape import HttpBody, HttpImplementation, HttpParameter
from toolcrib.kinds.python.shape import PythonImplementation

ARRAY: Any = ["blue", "black"]
OBJECT: Any = {"R": 100, "G": 200}
KEYED = {"idempotency_key": "header:Idempotency-Key"}


async def arrived(svc: Service, value: Any, place: str, style: str, *, explode: bool, **more: Any) -> Any:
    path = "/x/{color}" if place == "path" else "/x"
    found = parameter("color", place, style=style, explode=explode, **more)
    return await svc.sent(svc.tool(path, parameters=(found,)), {"color": value})


def built(
    first: HttpParameter, value: Any, path: str = "/", second: HttpParameter | None = None, other: Any = None
) -> str:
    """The URL that one or two arguments make."""
    parameters = (first, second) if second else (first,)
    implementation = HttpImplementation(method="GET", url=f"https://api.test/v1{path}", parameters=parameters)
    arguments = {found.name: given for found, given in zip(parameters, (value, other), strict=False)}
    definition = make_definition("deals", implementation=implementation)
    target = Target(definition, implementation, implementation.url, headers={}, idempotency_key="k")
    return build_request(target, arguments, Credentials()).url


@pytest.mark.requirement("runtime_http.styles")
@pytest.mark.parametrize(
    ("style", "explode", "value", "path"),
    [
        ("simple", False, "blue", "/x/blue"),
        ("simple", False, 7, "/x/7"),
        ("simple", False, True, "/x/true"),
        ("simple", False, ARRAY, "/x/blue,black"),
        ("simple", False, OBJECT, "/x/R,100,G,200"),
        ("simple", True, OBJECT, "/x/R=100,G=200"),
        ("label", False, "blue", "/x/.blue"),
        ("label", False, ARRAY, "/x/.blue,black"),
        ("label", True, ARRAY, "/x/.blue.black"),
        ("label", False, OBJECT, "/x/.R,100,G,200"),
        ("label", True, OBJECT, "/x/.R=100.G=200"),
        ("matrix", False, "blue", "/x/;color=blue"),
        ("matrix", False, ARRAY, "/x/;color=blue,black"),
        ("matrix", True, ARRAY, "/x/;color=blue;color=black"),
        ("matrix", False, OBJECT, "/x/;color=R,100,G,200"),
        ("matrix", True, OBJECT, "/x/;R=100;G=200"),
    ],
)
async def test_path_parameters_are_written_in_their_style(style: str, explode: bool, value: Any, path: str) -> None:
    async with service() as svc:
        assert (await arrived(svc, value, "path", style, explode=explode)).path == path


@pytest.mark.requirement("runtime_http.styles")
@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", True, "a b&c", [("color", "a b&c")]),
        ("form", True, ARRAY, [("color", "blue"), ("color", "black")]),
        ("form", False, ["a,b", "c"], [("color", "a,b,c")]),
        ("form", True, OBJECT, [("R", "100"), ("G", "200")]),
        ("form", False, OBJECT, [("color", "R,100,G,200")]),
        ("form", False, [], []),
        ("form", True, [], []),
        ("form", True, 1.5, [("color", "1.5")]),
        ("form", True, [{"a": 1}], [("color", '{"a":1}')]),
        ("spaceDelimited", False, ARRAY, [("color", "blue black")]),
        ("spaceDelimited", True, ARRAY, [("color", "blue"), ("color", "black")]),
        ("pipeDelimited", False, ARRAY, [("color", "blue|black")]),
        ("pipeDelimited", False, OBJECT, [("color", "R|100|G|200")]),
        ("deepObject", True, OBJECT, [("color[R]", "100"), ("color[G]", "200")]),
        ("deepObject", True, {"a": {"b": [1, 2]}}, [("color[a][b][0]", "1"), ("color[a][b][1]", "2")]),
        ("deepObject", True, {"a]&x=[": 1}, [("color[a]&x=[]", "1")]),
    ],
)
async def test_query_parameters_are_written_in_their_style(style: str, explode: bool, value: Any, query: Any) -> None:
    async with service() as svc:
        assert (await arrived(svc, value, "query", style, explode=explode)).query == query


@pytest.mark.requirement("runtime_http.styles")
def test_a_comma_inside_a_value_stays_apart_from_the_delimiter() -> None:
    assert built(parameter("color", explode=False), ["a,b", "c"]).endswith("?color=a%2Cb,c")


@pytest.mark.requirement("runtime_http.styles")
async def test_reserved_characters_stay_where_they_are_allowed_but_never_split_the_query() -> None:
    async with service() as svc:
        seen = await arrived(svc, "a/b?c&d=e#f", "query", "form", explode=True, allow_reserved=True)
        assert seen.raw_query.startswith("color=a/b?c")
        assert seen.query == [("color", "a/b?c&d=e#f")]


@pytest.mark.requirement("runtime_http.styles")
async def test_header_and_cookie_parameters_are_written_in_their_style() -> None:
    async with service() as svc:
        assert (await arrived(svc, ARRAY, "header", "simple", explode=False)).headers["color"] == "blue,black"
        assert (await arrived(svc, OBJECT, "header", "simple", explode=False)).headers["color"] == "R,100,G,200"
        assert (await arrived(svc, OBJECT, "header", "simple", explode=True)).headers["color"] == "R=100,G=200"
        assert (await arrived(svc, "a;b", "cookie", "form", explode=True)).headers["cookie"] == "color=a%3Bb"
        assert (await arrived(svc, ARRAY, "cookie", "form", explode=False)).headers["cookie"] == "color=blue,black"


@pytest.mark.requirement("runtime_http.styles")
async def test_absent_and_null_arguments_are_not_sent_and_the_urls_own_query_is() -> None:
    async with service() as svc:
        tool = svc.tool("/x?fixed=1#part", parameters=(parameter("a"), parameter("b"), parameter("h", "header")))
        seen = await svc.sent(tool, {"a": None, "h": None})
        assert (seen.path, seen.raw_query) == ("/x", "fixed=1")
        assert (await svc.sent(tool, {"b": "2"})).raw_query == "fixed=1&b=2"


@pytest.mark.requirement("runtime_http.path_safety")
@pytest.mark.parametrize(
    "value", ["../admin", "a/b", "a?b=c", "a#b", "a\\b", "%2e%2e", "{other}", "ä", "a b", "..;", "a%2Fb"]
)
async def test_no_value_leaves_its_path_segment(value: str) -> None:
    async with service() as svc:
        seen = await svc.sent(svc.tool("/deals/{id}/notes", parameters=(parameter("id", "path"),)), {"id": value})
        first, deals, found, notes = seen.path.split("/")
        assert (first, deals, unquote(found), notes, seen.raw_query) == ("", "deals", value, "notes", "")


@pytest.mark.requirement("runtime_http.path_safety")
@pytest.mark.parametrize(
    ("value", "style"), [("..", "simple"), (".", "simple"), ("", "simple"), (".", "label"), ([], "simple")]
)
async def test_a_value_that_would_lead_to_another_path_is_refused(value: Any, style: str) -> None:
    async with service() as svc:
        tool = svc.tool("/deals/{id}", parameters=(parameter("id", "path", style=style),))
        failed = await svc.failure(tool, {"id": value})
        assert (failed.error.code, failed.error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH)
        assert "which leads to another path" in failed.error.message
        assert svc.seen == []


@pytest.mark.requirement("runtime_http.path_safety")
@given(first=st.text(st.characters(codec="utf-8"), max_size=8), second=st.text("./?#%\\{}:@;,&=a", max_size=6))
def test_whatever_the_values_the_path_keeps_its_segments(first: str, second: str) -> None:
    url = built(parameter("a", "path"), first, "/{a}-{b}/end", parameter("b", "path"), second)
    assert url.count("/") == 5
    assert url.startswith("https://api.test/v1/")
    assert url.endswith("/end")
    assert not {"?", "#", "\\"} & set(url)


@pytest.mark.requirement("runtime_http.path_safety")
async def test_a_missing_path_argument_is_named() -> None:
    async with service() as svc:
        failed = await svc.failure(svc.tool("/deals/{id}"))
        assert "the path needs an argument for 'id'" in failed.error.message


@pytest.mark.requirement("runtime_http.path_safety")
async def test_no_argument_fills_the_host() -> None:
    async with service(auth=BEARER) as svc:
        tool = svc.tool(url="http://{host}/x", parameters=(parameter("host", "path"),))
        failed = await svc.failure(tool, {"host": "127.0.0.1"})
        assert failed.error.code == ErrorCode.POLICY_DENIED
        failed = await svc.failure(svc.tool(url="http://{host}/x", provider=None), {"host": "127.0.0.1"})
        assert (failed.error.code, failed.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)
        relative = svc.tool(url="/only/a/path", provider=None)
        assert (await svc.failure(relative)).error.code == ErrorCode.POLICY_DENIED


@pytest.mark.requirement("runtime_http.header_safety")
@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\x00b"])
async def test_a_line_break_in_a_header_is_refused(value: str) -> None:
    async with service() as svc:
        failed = await svc.failure(svc.tool(parameters=(parameter("X-Note", "header"),)), {"X-Note": value})
        assert failed.error.code == ErrorCode.VALIDATION_ERROR
        assert "header 'x-note' would hold a line break" in failed.error.message
        assert svc.seen == []


@pytest.mark.requirement("runtime_http.header_safety")
async def test_a_line_break_in_a_credential_is_refused_without_showing_it() -> None:
    async with service(auth=BearerAuth(token="${env:BROKEN}")) as svc:
        failed = await svc.failure(svc.tool())
        assert "x-evil" not in failed.error.message
        assert svc.seen == []


@pytest.mark.requirement("runtime_http.header_safety")
async def test_arguments_never_replace_credentials() -> None:
    async with service(auth=BEARER) as svc:
        tool = svc.tool(parameters=(parameter("Authorization", "header"),))
        assert (await svc.sent(tool, {"Authorization": "mine"})).headers["authorization"] == f"Bearer {TOKEN}"
    async with service(auth=ApiKeyAuth(key="${env:TOKEN}", name="sid", place="cookie")) as svc:
        tool = svc.tool(parameters=(parameter("any", "cookie"),))
        seen = await svc.sent(tool, {"any": {"sid": "mine", "a": 1}})
        assert seen.headers["cookie"] == f"a=1; sid={TOKEN}"
    async with service(auth=ApiKeyAuth(key="${env:TOKEN}", name="api key", place="query")) as svc:
        tool = svc.tool(parameters=(parameter("any"),))
        assert (await svc.sent(tool, {"any": {"a": 1}})).query == [("a", "1"), ("api key", TOKEN)]
        failed = await svc.failure(tool, {"any": {"api key": "mine"}})
        assert "may not set the query parameter 'api key'" in failed.error.message


@pytest.mark.requirement("runtime_http.header_safety")
async def test_a_header_that_http_does_not_allow_fails_the_call() -> None:
    async with service() as svc:
        failed = await svc.failure(svc.tool(headers={"Host": "evil.test"}))
        assert failed.error.code == ErrorCode.VALIDATION_ERROR


@pytest.mark.requirement("runtime_http.body")
@pytest.mark.parametrize(
    ("body", "arguments", "sent"),
    [
        (HttpBody(fields={"a": "a", "id_body": "id"}), {"a": 1, "id_body": None, "x": 2}, {"a": 1, "id": None}),
        (HttpBody(fields={"a": "a"}, required=True), {}, {}),
        (HttpBody(argument="body"), {"body": [1, 2]}, [1, 2]),
        (HttpBody(argument="body"), {"body": None}, None),
        (HttpBody(argument="body", content_type="application/merge-patch+json; charset=utf-8"), {"body": {}}, {}),
    ],
)
async def test_a_json_body_is_made_of_arguments(body: HttpBody, arguments: Any, sent: Any) -> None:
    async with service() as svc:
        seen = await svc.sent(svc.tool(method="POST", body=body), arguments)
        assert seen.json == sent
        assert seen.headers["content-type"] == body.content_type


NESTED: Any = {
    "data": {
        "type": "deals",
        "attributes": {"stage": {"$argument": "stage"}, "tags": ["crm", {"$argument": "tag"}], "rank": None},
        "relationships": {"owner": {"data": [{"id": {"$argument": "owner"}}]}},
        "options": {},
    }
}


@pytest.mark.requirement("runtime_http.body_template")
@pytest.mark.parametrize(
    ("template", "arguments", "sent"),
    [
        (
            NESTED,
            {"stage": "won", "tag": "x", "owner": 7},
            {
                "data": {
                    "type": "deals",
                    "attributes": {"stage": "won", "tags": ["crm", "x"], "rank": None},
                    "relationships": {"owner": {"data": [{"id": 7}]}},
                    "options": {},
                }
            },
        ),
        (NESTED, {}, {"data": {"type": "deals", "attributes": {"tags": ["crm"], "rank": None}, "options": {}}}),
        ({"a": {"$argument": "x"}, "b": {"$argument": "x"}}, {"x": None}, {"a": None, "b": None}),
        ([{"$argument": "x"}, 1], {"x": {"deep": [1]}}, [{"deep": [1]}, 1]),
        ({"$set": {"a": 1}}, {}, {"$set": {"a": 1}}),
    ],
)
async def test_a_template_puts_arguments_and_constants_at_their_places(
    template: Any, arguments: Any, sent: Any
) -> None:
    async with service() as svc:
        seen = await svc.sent(svc.tool(method="POST", body=HttpBody(template=template)), arguments)
        assert seen.json == sent
        assert seen.headers["content-type"] == "application/json"


@pytest.mark.requirement("runtime_http.body_template")
@given(value=st.recursive(st.text() | st.none() | st.booleans(), lambda inner: st.dictionaries(st.text(), inner)))
def test_no_value_changes_what_stands_beside_it_in_a_template(value: Any) -> None:
    body = HttpBody(template={"type": "deals", "deep": [{"value": {"$argument": "x"}}]})
    written = write_body(body, {"x": value, "type": "other"})
    assert written is not None
    assert orjson.loads(written.data) == {"type": "deals", "deep": [{"value": value}]}


@pytest.mark.requirement("runtime_http.body_template")
async def test_a_template_of_nothing_that_is_given_is_no_body_unless_one_is_required() -> None:
    async with service() as svc:
        template = {"a": [{"$argument": "x"}]}
        assert (await svc.sent(svc.tool(method="POST", body=HttpBody(template=template)))).body == b""
        assert (await svc.sent(svc.tool(method="POST", body=HttpBody(template=template, required=True)))).json == {}


@pytest.mark.requirement("runtime_http.body_template")
async def test_a_template_takes_the_key_of_the_call_and_a_credential_of_the_body() -> None:
    auth = ApiKeyAuth(key="${env:TOKEN}", place="body", name="api_key")
    template = {"api_key": {"$argument": "key"}, "meta": {"id": {"$argument": "request"}}}
    async with service(auth=auth) as svc:
        tool = svc.tool(method="POST", body=HttpBody(template=template), idempotency_key="request")
        sent = (await svc.sent(tool, {"key": "mine"})).json
        assert sent == {"api_key": TOKEN, "meta": {"id": "run_1/t1.c1"}}


@pytest.mark.requirement("runtime_http.body")
@pytest.mark.parametrize("body", [None, HttpBody(fields={"a": "a"}), HttpBody(argument="body")])
async def test_no_body_is_sent_where_none_is_given(body: Any) -> None:
    async with service() as svc:
        seen = await svc.sent(svc.tool(method="POST", body=body))
        assert seen.body == b""
        assert seen.headers.get("content-type") != "application/json"


@pytest.mark.requirement("runtime_http.body")
async def test_a_string_that_is_no_unicode_is_refused() -> None:
    async with service() as svc:
        body = svc.tool(method="POST", body=HttpBody(argument="body"))
        query = svc.tool(parameters=(parameter("q"),))
        for tool, arguments in ((body, {"body": "\ud83d"}), (query, {"q": "\ud83d"})):
            failed = await svc.failure(tool, arguments)
            assert failed.error.code == ErrorCode.VALIDATION_ERROR
            assert "lone surrogate" in failed.error.message


@pytest.mark.requirement("runtime_http.idempotency")
async def test_the_key_of_the_call_goes_where_the_tool_takes_it() -> None:
    async with service() as svc:
        assert (await svc.sent(svc.tool(**KEYED))).headers["idempotency-key"] == "run_1/t1.c1"
        in_body = svc.tool(method="POST", body=HttpBody(fields={"key": "requestId"}), idempotency_key="key")
        assert (await svc.sent(in_body)).json == {"requestId": "run_1/t1.c1"}
        assert (await svc.sent(in_body, {"key": "mine"})).json == {"requestId": "mine"}
        assert "idempotency-key" not in (await svc.sent(svc.tool())).headers


@pytest.mark.requirement("runtime_http.credentials")
async def test_headers_come_from_provider_operation_and_argument_in_that_order() -> None:
    async with service(auth=BEARER, headers={"X-A": "provider", "X-B": "provider", "X-C": "provider"}) as svc:
        tool = svc.tool(headers={"x-b": "operation", "x-c": "operation"}, parameters=(parameter("X-C", "header"),))
        seen = await svc.sent(tool, {"X-C": "argument"})
        assert [seen.headers[name] for name in ("x-a", "x-b", "x-c")] == ["provider", "operation", "argument"]
        assert seen.headers["authorization"] == f"Bearer {TOKEN}"
        assert seen.headers["accept"].startswith("application/json")


@pytest.mark.requirement("runtime_http.credentials")
async def test_credentials_are_named_as_secrets_on_success_and_failure() -> None:
    async with service(auth=BEARER) as svc:
        assert (await svc.run(svc.tool())).secrets == (TOKEN,)
        assert (await svc.failure(svc.tool("/{x}"))).secrets == (TOKEN,)


@pytest.mark.requirement("runtime_http.credentials")
async def test_a_tool_without_provider_sends_no_credentials() -> None:
    async with service(auth=BEARER, headers={"x-a": "1"}) as svc:
        seen = await svc.sent(svc.tool(provider=None))
        assert not {"authorization", "x-a"} & seen.headers.keys()


@pytest.mark.requirement("runtime_http.credentials")
async def test_a_missing_provider_or_secret_is_an_auth_error_before_anything_is_sent() -> None:
    async with service(auth=BearerAuth(token="${env:NONE}")) as svc:
        assert "needs ${env:NONE}" in (await svc.failure(svc.tool())).error.message
        missing = await svc.failure(svc.tool(provider="other"))
        assert "provider 'other', which does not exist" in missing.error.message
        assert missing.error.code == ErrorCode.AUTH_REQUIRED
        assert svc.seen == []


@pytest.mark.requirement("runtime_http.credentials")
async def test_a_tool_of_another_kind_is_refused() -> None:
    async with service() as svc:
        tool = svc.tool()
        python = PythonImplementation(function="a:b")
        other = tool.model_copy(update={"definition": tool.definition.model_copy(update={"implementation": python})})
        with pytest.raises(CallFailed, match="kind 'python'"):
            await svc.run(other)

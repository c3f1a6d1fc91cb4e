"""Parameters that are credentials: authentication, or a loss that says what to set, but no argument of a model."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.unit.cli.command import toolcrib
from tests.unit.net.servers import serving
from tests.unit.openapi.documents import document, http, imported, whys
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    LoginRequest,
    MutualTlsAuth,
    NoAuth,
    OAuth2Auth,
    ProviderAuth,
    TwoStepAuth,
)
from toolcrib.core.providers import ImportedApi
from toolcrib.interfaces.cli.support.inputs import read_auth
from toolcrib.kinds.http.openapi import import_openapi

pytestmark = pytest.mark.requirement("providers.credential_parameters")


def parameter(name: str, place: str, text: str = "", *, required: bool = True) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "description": text, "schema": {"type": "string"}}


def reading(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"get": {"parameters": [*parameters], **more}}


def arguments(api: ImportedApi) -> list[list[str]]:
    return [list(tool.input_schema["properties"]) for tool in api.tools]


POSTMARK = parameter("X-Postmark-Server-Token", "header", "The token associated with the Server.")
FORM = {
    "content": {
        "application/x-www-form-urlencoded": {
            "schema": {
                "type": "object",
                "required": ["api_key", "api_secret", "number"],
                "properties": {
                    "api_key": {"type": "string", "description": "You can find your API key in your account"},
                    "api_secret": {"type": "string", "description": "You can find your API secret there"},
                    "number": {"type": "string"},
                },
            }
        }
    },
    "required": True,
}


@pytest.mark.parametrize(
    ("given", "auth"),
    [
        (POSTMARK, ApiKeyAuth(key="${env:CRM_POSTMARK_SERVER_TOKEN}", name="X-Postmark-Server-Token")),
        (parameter("key", "query", "API Key."), ApiKeyAuth(key="${env:CRM_KEY}", place="query", name="key")),
        (parameter("session_token", "cookie"), None),
        (parameter("apikey", "cookie"), ApiKeyAuth(key="${env:CRM_APIKEY}", place="cookie", name="apikey")),
        (parameter("Secret", "header", "Secret"), ApiKeyAuth(key="${env:CRM_SECRET}", name="Secret")),
        (parameter("Authorization", "header", "`Bearer {token}`"), BearerAuth(token="${env:CRM_TOKEN}")),
        (
            parameter("authorization", "header", "Equal to 'Basic xx'"),
            BasicAuth(username="${env:CRM_USERNAME}", password="${env:CRM_PASSWORD}"),
        ),
        (parameter("Authorization", "header"), ApiKeyAuth(key="${env:CRM_AUTHORIZATION}", name="Authorization")),
    ],
)
def test_a_credential_parameter_becomes_authentication(given: dict[str, Any], auth: Any) -> None:
    api = imported({"/a": reading(given, parameter("ip", "query"))})
    if auth is None:
        assert api.provider.auth == NoAuth()
        assert arguments(api) == [["ip", given["name"]]]
        return
    assert api.provider.auth == auth
    assert arguments(api) == [["ip"]]
    (loss,) = (found for found in api.report.losses if found.what.startswith("parameter"))
    assert loss.matters
    assert loss.why.startswith("a credential, so no argument: calls send ${env:CRM_")


@pytest.mark.parametrize(
    "given",
    [
        parameter("key", "query", "Request brand by key"),
        parameter("key", "path", "The key of the document"),
        parameter("pageToken", "query", "A page token from the previous request"),
        parameter("X-Next-Token", "header", "Continues a list"),
        parameter("token", "query", "Lock token"),
        parameter("author", "query"),
    ],
)
def test_a_parameter_that_only_sounds_like_a_credential_stays_an_argument(given: dict[str, Any]) -> None:
    api = imported({f"/a/{{{given['name']}}}" if given["in"] == "path" else "/a": reading(given)})
    assert arguments(api) == [[given["name"]]]
    assert api.provider.auth == NoAuth()


def test_what_few_operations_are_about_stays_their_argument() -> None:
    paths = {f"/things/{number}": reading() for number in range(20)}
    marked = parameter("auth_key", "query", "The key to mark as compromised")
    api = imported({**paths, "/compromised": reading(marked)})
    assert arguments(api)[-1] == ["auth_key"]


async def test_credentials_in_query_and_body_are_sent_and_no_model_is_asked_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nexmo: `api_key` and `api_secret` in the query of one operation and the form of another."""
    monkeypatch.setenv("NEXMO_API_KEY", "key-0123456789")
    monkeypatch.setenv("NEXMO_API_SECRET", "secret-0123456789")
    seen: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(f"{request.raw_path} {(await request.read()).decode()}")
        return web.json_response({})

    pair = [parameter(name, "query", "You can find your API key in your account") for name in ("api_key", "api_secret")]
    paths = {"/prices": reading(*pair), "/verify": {"post": {"requestBody": FORM}}, "/open": reading()}
    async with serving(answer) as port:
        policy = EgressPolicy(allow=(f"127.0.0.1:{port}",))
        async with Crib("memory://", egress=policy) as crib:
            source = {**document(paths), "servers": [{"url": f"http://127.0.0.1:{port}"}]}
            api = await crib.imports.openapi(source, name="nexmo")
            assert arguments(api) == [[], ["number"], []]
            assert api.tools[1].input_schema["required"] == ["number"]
            for tool in api.tools:
                envelope = await crib.call(tool.name, **({"number": "1"} if "verify" in tool.name else {}))
                assert envelope.status == "success", envelope.error
    assert seen == [
        "/prices?api_key=key-0123456789&api_secret=secret-0123456789 ",
        "/verify api_key=key-0123456789&api_secret=secret-0123456789&number=1",
        "/open ",
    ]


async def test_a_credential_that_is_not_set_is_asked_for_by_name() -> None:
    async with Crib("memory://") as crib:
        await crib.imports.openapi(document({"/a": reading(POSTMARK)}), name="postmark")
        (tool,) = [found.name for found in crib.registry.current("default")]
        envelope = await crib.call(tool)
    assert envelope.error is not None
    assert envelope.error.code == "AUTH_REQUIRED"
    assert "${env:POSTMARK_SERVER_TOKEN}" in envelope.error.message


def test_optional_credentials_beside_a_scheme_are_told_and_sent_by_none() -> None:
    """Google: `key` and `oauth_token` of every operation beside OAuth 2."""
    standard = [
        parameter("key", "query", "API key. Your API key identifies your project.", required=False),
        parameter("oauth_token", "query", "OAuth 2.0 token for the current user.", required=False),
    ]
    flows = {"authorizationCode": {"authorizationUrl": "https://a.test/a", "tokenUrl": "https://a.test/t"}}
    schemes = {"securitySchemes": {"oauth2": {"type": "oauth2", "flows": flows}}}
    paths = {"/a": reading(*standard, security=[{"oauth2": []}])}
    api = imported(paths, components=schemes)
    assert arguments(api) == [[]]
    assert "calls send others" in whys(api)["parameter key"]
    again = import_openapi(
        document(paths, components=schemes),
        name="crm",
        auth=ApiKeyAuth(key="${env:KEY}", place="query", name="key"),
    )
    assert arguments(again) == [[]]
    assert "parameter key" not in whys(again)
    assert "parameter oauth_token" in whys(again)


def test_optional_credentials_without_a_scheme_are_sent_where_they_are_set() -> None:
    standard = [parameter(name, "query", "API key.", required=False) for name in ("key", "access_token")]
    api = imported({"/a": reading(*standard), "/b": reading()})
    assert api.provider.security == ()
    (first, second) = (http(tool).security for tool in api.tools)
    assert first == ({"key": (), "access_token": ()}, {"key": ()}, {"access_token": ()}, {})
    assert second is None


def test_a_required_credential_beside_a_scheme_is_needed_as_well() -> None:
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    api = imported({"/a": reading(POSTMARK), "/b": reading()}, components=schemes, security=[{"token": []}])
    assert set(api.provider.schemes) == {"token", "X-Postmark-Server-Token"}
    assert api.provider.security == ({"token": ()},)
    assert [http(tool).security for tool in api.tools] == [({"token": (), "X-Postmark-Server-Token": ()},), None]


def test_only_the_operations_that_declare_the_only_credential_send_it() -> None:
    api = imported({"/a": reading(POSTMARK), "/b": reading()})
    assert isinstance(api.provider.auth, ApiKeyAuth)
    assert [http(tool).security for tool in api.tools] == [None, ()]


@pytest.mark.requirement("providers.signature_4")
def test_aws_signature_4_is_a_loss_that_matters_said_by_name() -> None:
    signed = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders")
    hmac = {"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authtype": "awsSigv4"}
    fields = {"AccessToken": {"type": "string", "description": "A valid access token"}}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": fields}}}}
    paths = {
        "/a": {
            "parameters": [parameter(name, "header", required=False) for name in signed],
            "post": {"requestBody": body},
        }
    }
    api = imported(paths, components={"securitySchemes": {"hmac": hmac}}, security=[{"hmac": []}])
    assert api.provider.auth == NoAuth()
    assert arguments(api) == [["AccessToken"]]
    told = whys(api)
    for what in ("security scheme hmac", "parameters of AWS Signature 4"):
        assert "AWS Signature 4" in told[what]
        assert "base_url" in told[what]


def test_the_command_line_takes_authentication(tmp_path: Path) -> None:
    file = tmp_path / "api.json"
    file.write_bytes(orjson.dumps(document({"/a": reading(parameter("q", "query"))})))
    for number, (options, auth) in enumerate(
        [
            (("--token", "${env:T}"), {"kind": "bearer", "token": "${env:T}"}),
            (("--api-key", "query:k=${env:K}"), {"kind": "api_key", "key": "${env:K}", "place": "query", "name": "k"}),
            (
                ("--auth", '{"kind": "basic", "username": "${env:U}", "password": "${env:P}"}'),
                {"kind": "basic", "username": "${env:U}", "password": "${env:P}"},
            ),
            (
                ("--auth", "basic:username=${env:U},password=${secret:P}"),
                {"kind": "basic", "username": "${env:U}", "password": "${secret:P}"},
            ),
        ]
    ):
        store = f"sqlite:///{tmp_path / f'{number}.db'}"
        done = toolcrib("tool", "import", file, "--name", "crm", *options, store=store)
        assert done.exit_code == 0, done.output
        shown = orjson.loads(toolcrib("provider", "show", "crm", "--json", store=store).stdout)
        assert shown["auth"] == auth
    store = f"sqlite:///{tmp_path / 'wrong.db'}"
    wrong = toolcrib("tool", "import", file, "--name", "crm", "--api-key", "k=${env:K}", store=store)
    assert wrong.exit_code == 2
    assert "--api-key is not understood" in wrong.output
    both = toolcrib("tool", "import", file, "--name", "crm", "--token", "${env:T}", "--auth", "{}", store=store)
    assert both.exit_code == 2


@pytest.mark.parametrize(
    ("text", "auth"),
    [
        ("none", NoAuth()),
        ("bearer:token=${env:T}", BearerAuth(token="${env:T}")),
        ("api_key:place=query,name=k,key=${secret:K}", ApiKeyAuth(place="query", name="k", key="${secret:K}")),
        (
            "oauth2:token_url=https://a.test/t,client_id=c,client_secret=${secret:S},scopes=read write",
            OAuth2Auth(
                token_url="https://a.test/t", client_id="c", client_secret="${secret:S}", scopes=("read", "write")
            ),
        ),
        (
            "authorization_code:discovery_url=https://a.test/.well-known/openid-configuration,client_id=c,shared=true",
            AuthorizationCodeAuth(
                discovery_url="https://a.test/.well-known/openid-configuration", client_id="c", shared=True
            ),
        ),
        (
            "two_step:login.url=/session,login.body.user=${secret:U},login.body.password=${secret:P},path=$.id",
            TwoStepAuth(
                login=LoginRequest(url="/session", body={"user": "${secret:U}", "password": "${secret:P}"}), path="$.id"
            ),
        ),
        (
            "mutual_tls:certificate=${secret:C},key=${secret:K}",
            MutualTlsAuth(certificate="${secret:C}", key="${secret:K}"),
        ),
    ],
)
@pytest.mark.requirement("cli.auth_option")
def test_every_way_to_authenticate_can_be_written_as_an_option(text: str, auth: ProviderAuth) -> None:
    assert read_auth(text, "--auth") == auth


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            ("import-mcp", "https://a.test/mcp", "--auth", "bearer:token=sw0rdfish"),
            "instead of a reference such as",
        ),
        (
            ("import-mcp", "https://a.test/mcp", "--token", "sw0rd,fish"),
            "instead of a reference such as",
        ),
        (("import-graphql", "https://a.test/g", "--auth", "sw0rdfish"), "its kind is not among none, bearer, api_key"),
        (("import-graphql", "https://a.test/g", "--auth", "bearer:sw0rdfish"), "a part has no '='"),
        (("import-a2a", "https://a.test", "--auth", "api_key:place=here,name=k,key=${env:K}"), "place Input should be"),
        (("import-a2a", "https://a.test", "--auth", "basic:a=1,a.b=2"), "'a' is given twice"),
        (
            ("import-a2a", "https://a.test", "--auth", "none", "--token", "${env:T}"),
            "--token and --auth are two ways to give the same",
        ),
    ],
)
@pytest.mark.requirement("cli.auth_option")
def test_what_is_no_authentication_is_refused_with_the_right_spelling(
    tmp_path: Path, command: tuple[str, ...], problem: str
) -> None:
    refused = toolcrib("tool", *command, "--name", "crm", store=f"sqlite:///{tmp_path / 'crib.db'}")
    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr
    assert "fish" not in refused.output

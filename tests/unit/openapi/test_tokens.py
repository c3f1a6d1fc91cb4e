"""Parameters that repeat the bearer token are filled in and never asked for; what only looks like them is asked for."""

from typing import Any, cast

import pytest

from toolcrib.contracts import ApiKeyAuth, ProviderAuth, ToolDefinition
from toolcrib.core.providers import Credentials
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.runtime.requests import Target, build_request
from toolcrib.kinds.http.shape import HttpImplementation

pytestmark = pytest.mark.requirement("providers.repeated_tokens")

SAID = "Authentication token. Requires scope: `chat:write`"


def operation(place: str | None, description: str = SAID, name: str = "token", **fields: Any) -> dict[str, Any]:
    """An operation with a parameter that may be the credential, and one that is not."""
    other = {"name": "channel", "in": "formData" if place == "formData" else "query", "type": "string"}
    token = {"name": name, "in": place, "type": "string", "required": True, "description": description}
    answers = {"200": {"description": "ok"}}
    consumes = {"consumes": ["application/x-www-form-urlencoded"]} if place == "formData" else {}
    return {"parameters": [other, *([token] if place else [])], "responses": answers, **consumes, **fields}


def imported(auth: ProviderAuth | None = None, **operations: dict[str, Any]) -> dict[str, ToolDefinition]:
    """The tools of a document in which everything needs a bearer token."""
    document: dict[str, Any] = {
        "swagger": "2.0",
        "info": {"title": "Chat", "version": "1"},
        "host": "chat.example",
        "schemes": ["https"],
        "securityDefinitions": {"chat": {"type": "oauth2", "flow": "accessCode", "tokenUrl": "https://chat.example/t"}},
        "security": [{"chat": []}],
        "paths": {f"/{name}": {"post": {"operationId": name, **made}} for name, made in operations.items()},
    }
    return {tool.name: tool for tool in import_openapi(document, name="chat", auth=auth).tools}


def tokens(tool: ToolDefinition) -> tuple[str, ...]:
    """What is filled in."""
    return cast("HttpImplementation", tool.implementation).token_arguments


@pytest.mark.parametrize("place", ["header", "query", "formData"])
def test_a_token_beside_a_bearer_scheme_is_sent_and_not_asked_for(place: str) -> None:
    tool = imported(send=operation(place))["send"]
    assert list(tool.input_schema["properties"]) == ["channel"]
    assert "required" not in tool.input_schema
    implementation = cast("HttpImplementation", tool.implementation)
    target = Target(tool, implementation, implementation.url, {}, "key")
    credentials = Credentials(headers={"authorization": "Bearer xoxb-1"})
    request = build_request(target, {"channel": "c", "token": "mine"}, credentials)
    assert request.headers["authorization"] == "Bearer xoxb-1"
    sent = {"header": request.headers.get("token"), "query": request.url, "formData": (request.body or b"").decode()}
    assert "xoxb-1" in str(sent[place])
    assert "mine" not in f"{request.url} {request.headers} {request.body!r}"


def test_without_a_bearer_token_nothing_is_sent_in_its_place() -> None:
    tool = imported(send=operation("formData"))["send"]
    implementation = cast("HttpImplementation", tool.implementation)
    target = Target(tool, implementation, implementation.url, {}, "key")
    request = build_request(target, {"channel": "c"}, Credentials(headers={"authorization": "Basic eA=="}))
    assert request.body == b"channel=c"


def test_a_token_that_an_operation_is_about_is_asked_for() -> None:
    tools = imported(
        reset=operation("query", "The token from the e-mail, which is valid for an hour."),
        send=operation(None),
        revoke=operation("query", "The access token to revoke."),
        read=operation(None),
        free=operation("query", security=[]),
        page=operation("query", "Access token", name="page_token"),
    )
    assert {name: tokens(tool) for name, tool in tools.items()} == dict.fromkeys(tools, ())
    assert "token" in tools["revoke"].input_schema["required"]


def test_where_most_operations_repeat_the_token_one_that_needs_none_keeps_its_parameter() -> None:
    tools = imported(a=operation("query"), b=operation("header"), free=operation("query", security=[]))
    assert {name: tokens(tool) for name, tool in tools.items()} == {"a": ("token",), "b": ("token",), "free": ()}


def test_a_provider_whose_credential_is_no_bearer_token_fills_nothing_in() -> None:
    auth = ApiKeyAuth(key="${env:CHAT_KEY}", name="X-Key")
    assert tokens(imported(auth, send=operation("query"))["send"]) == ()


def test_a_form_of_openapi_3_repeats_the_token_too() -> None:
    schema = {
        "type": "object",
        "required": ["token"],
        "properties": {"token": {"type": "string", "description": SAID}, "text": {"type": "string"}},
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Chat", "version": "1"},
        "servers": [{"url": "https://chat.example"}],
        "components": {"securitySchemes": {"chat": {"type": "http", "scheme": "bearer"}}},
        "security": [{"chat": []}],
        "paths": {
            "/send": {
                "post": {
                    "operationId": "send",
                    "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": schema}}},
                    "responses": {"200": {"description": "ok"}},
                }
            }
        },
    }
    (tool,) = import_openapi(document, name="chat").tools
    assert tokens(tool) == ("token",)
    assert list(tool.input_schema["properties"]) == ["text"]

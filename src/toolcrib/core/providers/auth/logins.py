"""Tokens from a login of the system's own: a request made of a template, and where in its answer the token is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlencode

import orjson

from toolcrib.contracts import SECRET_REFERENCE, InvalidExpression, Json, JsonObject, TwoStepAuth, digest
from toolcrib.core.expressions.jsonpath import select_one
from toolcrib.core.providers.auth.tokens import (
    FORM,
    LIFE_S,
    Endpoints,
    Issued,
    json_object,
    refused,
    seconds,
    unusable,
)
from toolcrib.infrastructure.net import TlsIdentity


@dataclass(frozen=True, slots=True)
class Login:
    """What a token is asked for with: the definition, where it goes, and the secrets behind its references."""

    auth: TwoStepAuth
    url: str
    """In full."""
    values: Mapping[str, str] = field(repr=False)
    tls: TlsIdentity | None = field(default=None, repr=False)
    """Who we are, if the system wants to know that too."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return tuple(self.values.values())

    def key(self) -> str:
        """Equal for logins that get the same token; holds no secret."""
        certificate = None if self.tls is None else self.tls.certificate
        described = [self.auth.model_dump(mode="json"), self.url, certificate, sorted(self.values.items())]
        return digest(orjson.dumps(described))

    async def fetch(self, endpoints: Endpoints, refresh_token: str | None) -> Issued:
        """A new token; see `TokenSource.fetch`."""
        del refresh_token  # a login has none
        login = self.auth.login
        headers = {name.lower(): self._filled(text) for name, text in login.headers.items()}
        body: bytes | None = None
        if login.body is not None:
            body, kind = self._body(login.body, as_form=login.encoding == "form")
            headers = {"accept": "application/json", "content-type": kind} | headers
        answer = await endpoints.ask(login.method, self.url, headers, body, tls=self.tls)
        if not 200 <= answer.status < 300:
            raise refused(self.url, answer)
        return self._read(json_object(self.url, answer))

    def _body(self, body: JsonObject, *, as_form: bool) -> tuple[bytes, str]:
        filled = cast("JsonObject", self._everywhere(body))
        if as_form:
            return urlencode({name: str(value) for name, value in filled.items()}).encode(), FORM["content-type"]
        return orjson.dumps(filled), "application/json"

    def _everywhere(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._filled(value)
        if isinstance(value, dict):
            return {name: self._everywhere(item) for name, item in cast("JsonObject", value).items()}
        if isinstance(value, list):
            return [self._everywhere(item) for item in cast("list[Json]", value)]
        return value

    def _filled(self, text: str) -> str:
        """A text with the secrets in the place of their references; what is in a secret is not looked at again."""

        def fill(match: re.Match[str]) -> str:
            return self.values[match[0]]

        return SECRET_REFERENCE.sub(fill, text)

    def _read(self, answer: JsonObject) -> Issued:
        auth = self.auth
        try:
            token = select_one(auth.path, answer)
            life = None if auth.life_path is None else select_one(auth.life_path, answer)
        except InvalidExpression as problem:
            raise unusable(self.url, f"gave an answer to which a path cannot be applied: {problem}") from problem
        if not isinstance(token, str) or not token:
            raise unusable(self.url, f"answered without a text at {auth.path}, where the token should be")
        return Issued(token, seconds(life, auth.life_s or LIFE_S))

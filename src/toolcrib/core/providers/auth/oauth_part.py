"""Tokens without a person: the grants of OAuth 2 that a client has of its own (RFC 6749, sections 4.4 and 6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

import orjson

from toolcrib.contracts import AuthorizationCodeAuth, OAuth2Auth, Reason, digest
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.auth.tokens import FORM, Endpoints, Issued, basic


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks a token endpoint (RFC 6749, section 2.3.1)."""

    client_id: str = field(repr=False)
    client_secret: str | None = field(repr=False)
    in_body: bool
    """Whether the secret goes into the body instead of the header."""
    is_known: bool = False
    """Whether the id stands in the definition, so that there is nothing to hide."""

    @classmethod
    def of(cls, auth: OAuth2Auth | AuthorizationCodeAuth, values: Mapping[str, str]) -> "Client":
        """The client of a definition, with the secrets by reference."""
        secret = None if auth.client_secret is None else values[auth.client_secret]
        client_id = values.get(auth.client_id)
        return cls(client_id or auth.client_id, secret, auth.client_auth == "body", is_known=client_id is None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        client_id = () if self.is_known else (self.client_id,)
        if self.client_secret is None:
            return client_id
        return (*client_id, self.client_secret, basic(self.client_id, self.client_secret))

    def request(self, fields: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
        """Headers and body of a request that this client makes."""
        sent = dict(fields)
        if self.client_secret is not None and not self.in_body:
            pair = basic(self.client_id, self.client_secret)
            return {**FORM, "authorization": f"Basic {pair}"}, urlencode(sent).encode()
        sent["client_id"] = self.client_id
        if self.client_secret is not None:
            sent["client_secret"] = self.client_secret
        return dict(FORM), urlencode(sent).encode()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is asked for with: the definition, and the secrets behind its references."""

    auth: OAuth2Auth
    scopes: tuple[str, ...]
    client: Client
    refresh_token: str | None = field(repr=False)

    @classmethod
    def of(cls, auth: OAuth2Auth, scopes: tuple[str, ...], values: Mapping[str, str]) -> "Grant":
        """The grant of a definition, with the secrets by reference."""
        refresh_token = None if auth.refresh_token is None else values[auth.refresh_token]
        return cls(auth, scopes, Client.of(auth, values), refresh_token)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return self.client.secrets + ((self.refresh_token,) if self.refresh_token else ())

    def key(self) -> str:
        """Equal for grants that get the same token; holds no secret."""
        client = self.client
        described = [self.auth.model_dump(mode="json"), self.scopes]
        return digest(orjson.dumps([described, client.client_id, client.client_secret, self.refresh_token]))

    async def fetch(self, endpoints: Endpoints, refresh_token: str | None) -> Issued:
        """A new token; see `TokenSource.fetch`."""
        auth = self.auth
        url = await endpoints.token_url(auth.token_url, auth.discovery_url)
        fields = {"grant_type": auth.grant}
        if auth.grant == "refresh_token":
            fields["refresh_token"] = refresh_token or self.refresh_token or ""
        if self.scopes:
            fields["scope"] = " ".join(self.scopes)
        if auth.audience is not None:
            fields["audience"] = auth.audience
        try:
            return await endpoints.issue(url, *self.client.request(fields))
        except CallFailed as failure:
            if failure.metadata.get("oauth_error") == "invalid_grant":
                said = failure.error
                message = f"{said.message}: its grant has ended, so reconnect: get a new refresh token and set it"
                failure.error = error(said.code, Reason.RECONNECT_REQUIRED, message)
            raise

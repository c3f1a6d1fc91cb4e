"""API keys: `tcb_<12 hex id>_<43 characters>`, shown once and stored as an HMAC.

The secret part has 256 random bits, so a keyed hash is as safe as a slow hash and a thousand times faster. The key of
the hash (the pepper) is not in the database: with the database alone, keys can neither be used nor tested.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from toolcrib.contracts import InvalidInput, InvalidSettings, Principal, Unauthenticated
from toolcrib.core.executor import Clock
from toolcrib.core.policy import permits
from toolcrib.infrastructure.store import ApiKey, ApiKeys

Authenticator: TypeAlias = Callable[[str], Awaitable[Principal]]
"""Returns the principal of a bearer token; raises `Unauthenticated` if there is none."""

_KEY: Final = re.compile(r"tcb_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_SCOPE: Final = re.compile(r"ai://(?:\*|[a-z]+(?:/[A-Za-z0-9_.*-]+)+)")
_SHORTEST_PEPPER: Final = 32
_REFUSAL: Final = "the API key is not valid here; send 'Authorization: Bearer tcb_…' with a key of this server"


class KeyRing:
    """Issues API keys and recognises them.

    Args:
        keys: Where their hashes are.
        pepper: Key of the hash, at least 32 bytes, kept outside of the database.
        clock: Time, for expiry.
    """

    def __init__(self, keys: ApiKeys, pepper: bytes, clock: Clock) -> None:
        self._keys = keys
        self._pepper = pepper
        self._clock = clock

    async def issue(
        self, principal: Principal, *, scopes: tuple[str, ...] | None = None, expires_at: datetime | None = None
    ) -> str:
        """Make a key for a principal. The text is nowhere stored: it cannot be shown a second time.

        Args:
            principal: The principal that the key's holder acts as.
            scopes: Patterns of the security URIs that the holder may use, `ai://tools/crm/*`; the principal's if null.
            expires_at: From when on it is refused; null for never.

        Raises:
            InvalidInput: A scope is no pattern, or reaches beyond the principal's grants.
        """
        wanted = principal.grants if scopes is None else scopes
        for scope in wanted:
            _check_scope(scope, principal)
        key_id = secrets.token_hex(6)
        text = f"tcb_{key_id}_{secrets.token_urlsafe(32)}"
        await self._keys.add(
            ApiKey(
                key_id=key_id,
                realm=principal.realm,
                principal=principal.id,
                secret_hash=self._hash(text),
                made_by=principal.id,
                created_at=self._clock.now(),
                expires_at=expires_at,
                last_four=text[-4:],
                scopes=wanted,
            )
        )
        return text

    async def authenticate(self, text: str) -> Principal:
        """The principal of a key.

        Raises:
            Unauthenticated: It is malformed, unknown or expired. Unknown and wrong keys give the same error.
        """
        match = _KEY.fullmatch(text)
        key = await self._keys.get(match[1]) if match else None
        if not hmac.compare_digest(self._hash(text), key.secret_hash if key else "") or key is None:
            raise Unauthenticated(_REFUSAL)
        if key.expires_at is not None and key.expires_at <= self._clock.now():
            msg = f"API key {key.key_id} has expired; issue a new one"
            raise Unauthenticated(msg)
        return Principal(id=key.principal, realm=key.realm, grants=key.scopes)

    def _hash(self, text: str) -> str:
        return hmac.new(self._pepper, text.encode(), hashlib.sha256).hexdigest()


def _check_scope(scope: str, principal: Principal) -> None:
    if not _SCOPE.fullmatch(scope):
        msg = f"scope {scope!r} is not a security URI pattern; write e.g. ai://tools/crm/*/execute, or ai://*"
        raise InvalidInput(msg)
    if scope not in principal.grants and not permits(principal.grants, scope):
        msg = f"principal {principal.id!r} has no grant for {scope!r}, so its keys cannot have it"
        raise InvalidInput(msg)


def read_pepper(store: str, environment: Mapping[str, str], *, keys: int) -> bytes:
    """The server's secret: `TOOLCRIB_PEPPER`, else a file `NAME-pepper` beside the SQLite file, made with mode 600.

    A store in memory forgets its keys, so it gets a pepper that is forgotten too.

    Args:
        store: The store's URL.
        environment: Where the setting is looked up.
        keys: How many keys the store has; they need the pepper that they were made with.

    Raises:
        InvalidSettings: The setting is too short, the file is gone or others can read it, or it has no place.
    """
    given = environment.get("TOOLCRIB_PEPPER")
    if given is not None:
        if len(given) < _SHORTEST_PEPPER:
            msg = f"TOOLCRIB_PEPPER has {len(given)} characters; give at least {_SHORTEST_PEPPER} random ones"
            raise InvalidSettings(msg)
        return given.encode()
    scheme, _, path = store.partition("://")
    if scheme == "memory":
        return secrets.token_bytes(32)
    if scheme != "sqlite":
        msg = f"a {scheme} store has no file beside it for the pepper; set TOOLCRIB_PEPPER to 32 or more characters"
        raise InvalidSettings(msg)
    database = Path(path[1:])
    file = database.with_name(f"{database.stem}-pepper")
    if keys and not file.exists():
        msg = (
            f"the store's {keys} API keys cannot be checked without {file}; bring it back, or set TOOLCRIB_PEPPER to it"
        )
        raise InvalidSettings(msg)
    return _read_or_make(file)


def _read_or_make(file: Path) -> bytes:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(secrets.token_hex(32))
        try:
            file.hardlink_to(draft)  # the one of two processes that comes first; the other reads what it wrote
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        msg = f"the pepper in {file} can be read by others (mode {mode:o}); chmod 600 it, or make new API keys"
        raise InvalidSettings(msg)
    return file.read_text().strip().encode()

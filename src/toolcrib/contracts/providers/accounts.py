"""A service account: an identity of its own that an agent may act as, with grants of its own (004, `principalRef`).

Who may write an agent that acts as an account needs `ai://accounts/{name}/execute`; who calls the agent does not.
"""

from typing import Final

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.base.principals import Principal
from toolcrib.contracts.providers.providers_part import NAME_PATTERN

_PREFIX: Final = "account:"


class ServiceAccount(Contract):
    """An identity without a person."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    grants: tuple[str, ...] = ()
    """Patterns of security URIs, as of any principal."""
    enabled: bool = True
    """A disabled account can do nothing, also in runs that have begun."""

    def principal(self, realm: str) -> Principal:
        """Who acts: `account:{name}`, which is nobody else's id.

        It has secrets and connections of its own, and none of the person's who called or who is named like it.
        """
        grants = self.grants if self.enabled else ()
        return Principal(id=f"{_PREFIX}{self.name}", kind="service", realm=realm, grants=grants)


def account_of(principal: Principal) -> str | None:
    """Name of the service account that a principal is; null if it is none."""
    is_account = principal.kind == "service" and principal.id.startswith(_PREFIX)
    return principal.id.removeprefix(_PREFIX) if is_account else None

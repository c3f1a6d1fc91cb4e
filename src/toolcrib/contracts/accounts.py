"""A service account: an identity of its own that an agent may act as, with grants of its own (004, `principalRef`).

Who may write an agent that acts as an account needs `ai://accounts/{name}/execute`; who calls the agent does not.
"""

from pydantic import Field

from toolcrib.contracts._base import Contract
from toolcrib.contracts.principals import Principal
from toolcrib.contracts.providers import NAME_PATTERN


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
        """Who acts. It has secrets and connections of its own, and none of the person's who called."""
        return Principal(id=self.name, kind="service", realm=realm, grants=self.grants if self.enabled else ())

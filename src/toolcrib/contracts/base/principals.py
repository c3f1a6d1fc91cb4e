"""Principals, realms, and the URIs that permissions name.

A realm is a tenant: data never leaves it. A principal is a user, a service, or an agent that acts for one. The URI of
a tool is `ai://tools/{category}/{name}/{execute|read|write}`; the URIs of other things have the same form.

Example:
    ann = Principal(id="ann", grants=("ai://tools/crm/*/execute",))
    acting = crib.acting_as(ann)
"""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.base.display import fields_in_short

PrincipalKind: TypeAlias = Literal["user", "service", "agent"]
Verb: TypeAlias = Literal["execute", "read", "write", "delete", "publish"]
"""`publish`: have a workflow be run that was a draft; who is no person has it only if a grant names the verb."""
LOOKS: Final[tuple[Verb, ...]] = ("read", "execute", "write")
"""Who may do one of these with a tool may see it."""

DEFAULT_REALM = "default"


class Principal(Contract):
    """Who makes a call. Every call has one, from the first day."""

    id: str = Field(min_length=1, max_length=200)
    kind: PrincipalKind = "user"
    realm: str = Field(default=DEFAULT_REALM, min_length=1, max_length=100)
    grants: tuple[str, ...] = ("ai://*",)
    """Patterns of security URIs; `*` stands for one segment, a trailing `*` for all that follow."""
    acts_for: str | None = None
    """Id of the user for whom an agent or a service acts."""

    @property
    def user(self) -> str:
        """Id of whose secrets and connections are used."""
        return self.acts_for or self.id

    def __repr__(self) -> str:
        """One line of bounded length."""
        return fields_in_short(
            "Principal", id=self.id, kind=self.kind, realm=self.realm, grants=self.grants, acts_for=self.acts_for
        )


OWNER = Principal.model_construct(id="owner")
"""The principal of an embedded crib: one realm and its owner."""


def tool_uri(category: str, name: str, verb: Verb = "execute") -> str:
    """The security URI of a tool: `ai://tools/{category}/{name}/{verb}`."""
    return f"ai://tools/{category}/{name}/{verb}"

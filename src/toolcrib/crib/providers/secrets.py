"""The secrets of a crib: set by name, listed without values, used in definitions as `${secret:NAME}`.

Example:
    from toolcrib.contracts import BearerAuth

    await crib.secrets.set("CRM_TOKEN", "t0k3n")
    auth = BearerAuth(token="${secret:CRM_TOKEN}")
"""

from collections.abc import Sequence

from toolcrib.contracts import SecretEntry, SecretScope
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices


class Secrets:
    """Sets, lists and removes secrets.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._vault = parts.keeping.vault
        self._clock = parts.outside.clock
        self._actor = actor

    async def set(self, name: str, value: str, *, scope: SecretScope = "realm") -> SecretEntry:
        """Set a secret of the caller, of the caller's realm, or of all realms.

        Raises:
            InvalidInput: The name cannot be used in a reference, or the value is empty or too long.
            InvalidSettings: There are no master keys, or `toolcrib[vault]` is not installed.
            Conflict: Another process set it at the same time.

        Example:
            from toolcrib.contracts import BearerAuth, ProviderDefinition

            await crib.secrets.set("CRM_TOKEN", "t0k3n")
            auth = BearerAuth(token="${secret:CRM_TOKEN}")
            await crib.save_provider(ProviderDefinition(name="crm", base_url="https://api.crm.example", auth=auth))
        """
        who = await self._actor.authorize()
        return await self._vault.set(name, value, scope=scope, principal=who, at=self._clock.now())

    async def list(self) -> Sequence[SecretEntry]:
        """The secrets that the caller's calls can use, without values.

        Example:
            await crib.secrets.set("CRM_TOKEN", "t0k3n")
            print([(entry.name, entry.version) for entry in await crib.secrets.list()])
        """
        return await self._vault.list(await self._actor.authorize())

    async def remove(self, name: str, *, scope: SecretScope = "realm") -> None:
        """Remove a secret.

        Raises:
            NotFound: The scope has no secret of this name.

        Example:
            await crib.secrets.set("CRM_TOKEN", "t0k3n", scope="user")
            await crib.secrets.remove("CRM_TOKEN", scope="user")
        """
        await self._vault.remove(name, scope=scope, principal=await self._actor.authorize())

    async def rotate(self) -> int:
        """Seal all secrets and connections of all realms under the newest master key; returns how many were not.

        Raises:
            InvalidSettings: There are no master keys, or an old one is missing.
            Unavailable: One changed during the rotation; rotate again.

        Example:
            count = await crib.secrets.rotate()  # after a new first key in TOOLCRIB_MASTER_KEYS
        """
        await self._actor.authorize()
        return await self._vault.rotate()

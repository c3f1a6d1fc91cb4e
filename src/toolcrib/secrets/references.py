"""References to secrets and where they resolve: environment variables that an operator has released.

A definition holds `${env:NAME}`, never a value. The value is looked up for one call, after the guard, and forgotten
with it.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from toolcrib.contracts import InvalidDefinition, Principal

_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def environment_name(reference: str) -> str:
    """The variable that `${env:NAME}` names.

    Raises:
        InvalidDefinition: The text is not such a reference; it may be a secret itself, so it is not repeated.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        size = len(reference)
        msg = f"a secret must be a reference such as ${{env:CRM_TOKEN}}; this is something else ({size} characters)"
        raise InvalidDefinition(msg)
    return match.group(1)


class EnvironmentSecrets:
    """Resolves `${env:NAME}` for names that match one of the released patterns.

    Args:
        environment: The variables, usually `os.environ`.
        released: Patterns such as `CRM_*`. A name that none matches does not resolve, so that a definition cannot
        read the server's own secrets.
    """

    def __init__(self, environment: Mapping[str, str], released: tuple[str, ...]) -> None:
        self._environment = environment
        self._released = released

    async def resolve(self, reference: str, principal: Principal) -> str | None:
        """The value, or null if the variable is not set, is empty or not released."""
        name = environment_name(reference)
        return (self._environment.get(name) or None) if self.is_released(name) else None

    def is_released(self, name: str) -> bool:
        """Whether definitions may have a variable's value."""
        return any(fnmatchcase(name, pattern) for pattern in self._released)

"""Which programs may be started as MCP servers: an allow list of the operator.

    GITHUB_TOKEN= /usr/bin/node /opt/mcp/github.js      exactly this, with this variable if the provider gives it
    /usr/bin/files-server --read-only *                 further arguments, none of which is an option

A deny list is never complete (`python -c`, `npx --yes`, `LD_PRELOAD`, `NODE_OPTIONS`), so there is only this list: no
other program starts, and a program gets only the variables that its line names. The list is checked when a provider is
saved, and again before a program is started.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import InvalidDefinition, InvalidSettings, McpConnection, ProviderDefinition

_MORE: Final = "*"
_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_PLAIN: Final = re.compile(r"[\w/.~@][^\x00-\x1f\x7f]*")
"""An argument that no program takes for an option."""


@dataclass(frozen=True, slots=True)
class Program:
    """One line of the operator's list."""

    argv: tuple[str, ...]
    variables: frozenset[str]
    """Names of the variables that a provider may give it."""
    is_open: bool
    """Whether further arguments may follow."""

    @classmethod
    def parse(cls, line: str) -> "Program":
        """Read a line as a shell would split it.

        Raises:
            InvalidSettings: It names no program.
        """
        try:
            words = shlex.split(line)
        except ValueError as problem:
            raise InvalidSettings(f"MCP command {line!r} cannot be split into words: {problem}") from None
        variables: list[str] = []
        while words and (match := _VARIABLE.fullmatch(words[0])) is not None:
            variables.append(match[1])
            del words[0]
        is_open = len(words) > 1 and words[-1] == _MORE
        argv = tuple(words[:-1] if is_open else words)
        if not argv or argv[0] == _MORE:
            msg = f"MCP command {line!r} names no program; write it as `NAME= program argument …`"
            raise InvalidSettings(msg)
        return cls(argv, frozenset(variables), is_open)

    def allows(self, connection: McpConnection) -> bool:
        """Whether this line covers a connection's command and variables."""
        command = connection.command
        further = command[len(self.argv) :]
        return (
            command[: len(self.argv)] == self.argv
            and (self.is_open or not further)
            and all(map(_PLAIN.fullmatch, further))
            and self.variables.issuperset(connection.environment)
        )


class AllowedPrograms:
    """The operator's list.

    Args:
        lines: `mcp_commands` of the settings; empty if nothing may be started.

    Raises:
        InvalidSettings: A line names no program.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._programs = tuple(map(Program.parse, lines))

    def check(self, provider: ProviderDefinition) -> None:
        """Refuse a provider whose program may not be started; every other one passes.

        Raises:
            InvalidDefinition: Names the command and the setting.
        """
        connection = provider.connection
        if not isinstance(connection, McpConnection) or connection.transport != "stdio":
            return
        if not any(program.allows(connection) for program in self._programs):
            names = "".join(f"{name}= " for name in sorted(connection.environment))
            msg = (
                f"provider {provider.name!r}: the operator has not allowed to start {shlex.join(connection.command)!r}"
                f"{f' with the variables {names.strip()}' if names else ''}; it has to be listed word for word in "
                "TOOLCRIB_MCP_COMMANDS"
            )
            raise InvalidDefinition(msg)

"""Names for imported tools that are free or already their own, and the errors of an import.

A provider's tools keep the names of an earlier import. They never replace a tool that is not the provider's.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final, Protocol, TypeVar

from toolcrib.contracts import (
    Conflict,
    EgressDenied,
    ErrorCode,
    Implementation,
    InvalidInput,
    PermissionDenied,
    Reason,
    ReconnectRequired,
    ToolcribError,
    ToolError,
    ToolRevision,
    ToolSource,
    Unavailable,
)
from toolcrib.core.executor import error
from toolcrib.core.providers.imports import ImportedApi, fitting


def in_the_tree(failure: ToolError) -> ToolcribError:
    """The error of the tree that says the same."""
    match failure.code:
        case ErrorCode.AUTH_REQUIRED:
            return ReconnectRequired(failure.message)
        case ErrorCode.POLICY_DENIED:
            return (EgressDenied if failure.reason is Reason.SSRF_BLOCKED else PermissionDenied)(failure.message)
        case ErrorCode.NETWORK_ERROR | ErrorCode.TIMEOUT | ErrorCode.RATE_LIMIT:
            return Unavailable(failure.message)
        case _:
            return InvalidInput(failure.message)


def as_a_call(problem: ToolcribError) -> ToolError:
    """What a call would fail with for the same reason."""
    match problem:
        case ReconnectRequired():
            code, reason = ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED
        case EgressDenied():
            code, reason = ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED
        case PermissionDenied():
            code, reason = ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING
        case Unavailable():
            code, reason = ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED
        case _:
            code, reason = ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE
    return error(code, reason, str(problem))


_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")

_MADE: Final = frozenset[ToolSource]({"imported", "auto_generated"})
"""Sources of tools that an import has made."""

ImplementationT = TypeVar("ImplementationT", bound=Implementation)
KeyT = TypeVar("KeyT", bound=Hashable)
ApiT_co = TypeVar("ApiT_co", bound=ImportedApi, covariant=True)


class Read(Protocol[ApiT_co]):
    """An import, given everything but the names that tools have already.

    No two operations of its report have the same `OperationImport.operation`.
    """

    def __call__(self, *, names: Mapping[str, str]) -> ApiT_co:
        """Import.

        Args:
            names: Of tools, by what `OperationImport.operation` calls their operation.
        """
        ...


async def under_free_names(
    read: Read[ApiT_co], provider: str, known: Mapping[str, str], tools: Collection[ToolRevision]
) -> ApiT_co:
    """The import, in which no tool has the name of one that is not the provider's.

    It runs in a thread: a large description takes seconds, in which other runs go on.

    Args:
        read: The import.
        provider: Name of the provider.
        known: Names that an earlier import gave, by operation.
        tools: All tools of the realm.

    Raises:
        Conflict: A tool would take the name of one that is not the provider's, even with the provider's name in front.
    """
    names_in_use = {tool.name for tool in tools if not _is_of(provider, tool)}
    imported = await asyncio.to_thread(read, names=known)
    longer = {operation: _with_provider(provider, tool) for operation, tool in _clashes(imported, names_in_use).items()}
    if longer:
        imported = await asyncio.to_thread(read, names={**known, **longer})
    for operation, tool in _clashes(imported, names_in_use).items():
        msg = f"{operation} of provider {provider!r} would replace the tool {tool!r}, which is not the provider's"
        raise Conflict(f"{msg}; import it under another provider's name, or give it another name by an override")
    return imported


def names_before(
    provider: str,
    tools: Collection[ToolRevision],
    kind: type[ImplementationT],
    key: Callable[[ImplementationT], KeyT],
) -> dict[KeyT, str]:
    """Names of the tools that an earlier import of a provider has made.

    Args:
        provider: Its name.
        tools: All tools of the realm.
        kind: The implementations that its imports make.
        key: What an implementation does, by which the next import finds its name.
    """
    made = ((tool.name, tool.definition) for tool in tools if tool.definition.source in _MADE)
    return {
        key(found.implementation): name
        for name, found in made
        if isinstance(found.implementation, kind) and found.implementation.provider_name == provider
    }


def _is_of(provider: str, tool: ToolRevision) -> bool:
    return tool.definition.provider == provider


def _clashes(imported: ImportedApi, names_in_use: Collection[str]) -> dict[str, str]:
    """Names of tools, by operation, that others have already."""
    found = {entry.operation: entry.tool for entry in imported.report.operations if entry.tool is not None}
    return {operation: tool for operation, tool in found.items() if tool in names_in_use}


def _with_provider(provider: str, tool: str) -> str:
    return fitting(f"{_ILLEGAL.sub('_', provider)}_{tool}")

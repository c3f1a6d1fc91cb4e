"""`EntityRuntime`: each call of an entity tool is one transaction. Importing this module loads no SQLAlchemy."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    InvalidInput,
    InvalidSettings,
    NotFound,
    Principal,
    ProviderDefinition,
    Reason,
    ToolcribError,
    Unavailable,
)
from toolcrib.core.executor import CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.core.providers import ProviderAccess
from toolcrib.core.providers.request_errors import count_request, meaning_of, request_limit_s
from toolcrib.infrastructure.net import NetworkError
from toolcrib.kinds.entity.importer import Databases
from toolcrib.kinds.entity.shape import EntityImplementation

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    from toolcrib.kinds.entity.importer.engines import Place, Table

T = TypeVar("T")

LOOK_S: Final = 60.0
"""Seconds within which a database must list its tables."""


class EntityRuntime:
    """Executes tools of kind `entity`.

    Args:
        databases: Opens them, and is closed with this.
        providers: Finds providers and the values of their references.
        clock: Time.
    """

    def __init__(self, databases: Databases, providers: ProviderAccess, *, clock: Clock) -> None:
        self._databases = databases
        self._providers = providers
        self._clock = clock

    async def bind(self, realm: str, name: str, engine: "sa.Engine", tables: "Mapping[Place, Table]") -> None:
        """Use an engine of the application for a provider; raises `InvalidSettings` if threads cannot share it."""
        await self._databases.bind(realm, name, engine, tables)

    async def close(self) -> None:
        """Let go of all databases."""
        await self._databases.close()

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: As `providers.entities.failures` says of the database; else the arguments are wrong, or the
                database may not be reached.
        """
        tool = dispatch.tool.definition
        made = tool.implementation
        if not isinstance(made, EntityImplementation):
            message = f"tool {tool.name!r} is of kind {made.kind!r}, which this runtime does not execute"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        provider = self._providers.require(dispatch.tool, made.provider)
        count_request(dispatch)
        from toolcrib.kinds.entity.runtime.operations import EntityRequest, perform  # noqa: PLC0415 - loads SQLAlchemy

        request = EntityRequest(tool.name, made, dispatch.input, self._clock.now(), dispatch.idempotency_key)
        return await self._work(
            provider,
            dispatch.tool.realm,
            dispatch.context.principal,
            lambda connection, table: perform(connection, table(made), request),
            who=f"tool {tool.name!r}",
            limit_s=request_limit_s(tool, provider),
            writes=tool.side_effects == "writes",
        )

    async def look(self, provider: ProviderDefinition, principal: Principal, work: "Callable[[sa.Connection], T]") -> T:
        """Run a function that reads the schema of a database.

        Args:
            provider: The database; it need not be stored.
            principal: The principal that acts, in its realm.
            work: Runs in a thread, in a transaction.

        Raises:
            CallFailed: The database cannot be used.
            ToolcribError: As the work raises.
        """
        return await self._work(
            provider,
            principal.realm,
            principal,
            lambda connection, _: work(connection),
            who=f"provider {provider.name!r}",
            limit_s=LOOK_S,
        )

    async def _work(
        self,
        provider: ProviderDefinition,
        realm: str,
        principal: Principal,
        work: "Callable[[sa.Connection, Callable[[EntityImplementation], Table]], T]",
        *,
        who: str,
        limit_s: float,
        writes: bool = False,
    ) -> T:
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - heavy

        secret = partial(self._providers.secret, principal=principal)
        try:
            database = await self._databases.open(realm, provider, secret)
            return await database.run(
                lambda connection: work(connection, partial(database.table, connection)),
                limit_s=limit_s,
                writes=writes,
            )
        except TimeoutError:
            doubt = "; the effect is unknown" if writes else ""
            message = f"{who}: the database did not answer within {limit_s:g} s{doubt}"
            raise CallFailed(error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, message)) from None
        except SQLAlchemyError as problem:
            raise _database_failure(who, problem) from None
        except (ToolcribError, NetworkError) as problem:
            raise _request_failure(who, problem) from None


def _database_failure(who: str, problem: "SQLAlchemyError") -> CallFailed:
    """The error of the database, without its statement, its values and its address."""
    from toolcrib.kinds.entity.importer.failures import diagnose  # noqa: PLC0415 - heavy

    found = diagnose(problem)
    details = {} if found.constraint is None else {"constraint": found.constraint}
    rolled_back = found.code is not ErrorCode.NETWORK_ERROR
    failure = error(found.code, found.reason, f"{who}: {found.words}", **details)
    return CallFailed(failure, effect="none" if rolled_back else None)


def _request_failure(who: str, problem: ToolcribError | NetworkError) -> CallFailed:
    """The error of a call that did not reach the database, or is invalid."""
    match problem:
        case EgressDenied() | NetworkError():
            code, reason = meaning_of(problem)
        case NotFound() | InvalidSettings():
            code, reason = ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET
        case InvalidInput():
            code, reason = ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH
        case Unavailable():
            code, reason = ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING
        case _:
            code, reason = ErrorCode.UNKNOWN, Reason.TOOL_FAILED
    return CallFailed(error(code, reason, f"{who}: {problem}"))

"""`GrpcRuntime`: executes tools of kind `grpc`. Every process has it; it loads grpcio at the first call."""

from typing import TYPE_CHECKING

from toolcrib.contracts import ErrorCode, InvalidSettings, Reason
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers import ProviderAccess
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.store import Blobs
from toolcrib.kinds.grpc.shape import GrpcImplementation

if TYPE_CHECKING:
    from toolcrib.kinds.grpc.runtime.calls import GrpcCalls


class GrpcRuntime:
    """Executes methods of gRPC services, without generated code.

    A call is one attempt, with one exception: if the server refuses a token that was fetched for it, the method is
    called once more with a new one. The deadline that the server gets is the provider's or the tool's `timeout_s`,
    whichever is shorter; a call that is given up is cancelled at the server.

    Args:
        session: Judges addresses.
        providers: Finds providers and the credentials for them.
        blobs: Has the descriptors of messages.
    """

    def __init__(self, session: HttpSession, providers: ProviderAccess, blobs: Blobs) -> None:
        self._session = session
        self._providers = providers
        self._blobs = blobs
        self._calls: GrpcCalls | None = None

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: As the table of `failures` says.
        """
        implementation = dispatch.tool.definition.implementation
        if not isinstance(implementation, GrpcImplementation):
            message = f"tool {dispatch.tool.name!r} is of kind {implementation.kind!r}, which this runtime does not run"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        try:
            calls = self.open()
        except InvalidSettings as missing:
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, str(missing))) from missing
        return await calls.call(dispatch, implementation)

    def open(self) -> "GrpcCalls":
        """What makes the calls, and has the channels.

        Raises:
            InvalidSettings: The packages are not installed.
        """
        if self._calls is None:
            try:
                from toolcrib.kinds.grpc.runtime.calls import GrpcCalls  # noqa: PLC0415 - loads grpcio
            except ImportError as problem:
                raise InvalidSettings(missing_extra("a tool of a gRPC server", problem.name, "grpc")) from problem
            self._calls = GrpcCalls(self._session, self._providers, self._blobs)
        return self._calls

    async def close(self) -> None:
        """Close the connections."""
        if self._calls is not None:
            await self._calls.close()
            self._calls = None

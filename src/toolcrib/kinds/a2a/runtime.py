"""`A2aRuntime`: executes tools of kind `a2a`. The SDK is loaded by the first call."""

from typing import TYPE_CHECKING

from toolcrib.contracts import ErrorCode, InvalidSettings, Reason
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.executor import BlobSink, CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.kinds.a2a.shape import A2aImplementation

if TYPE_CHECKING:
    from toolcrib.core.providers import ProviderAccess
    from toolcrib.infrastructure.net import HttpSession


class A2aRuntime:
    """Asks agents of other systems.

    Args:
        session: The way out.
        providers: Finds providers and the credentials for them.
        blob_sink: Keeps files of answers.
        clock: Time.
    """

    def __init__(
        self, session: "HttpSession", providers: "ProviderAccess", *, blob_sink: BlobSink, clock: Clock
    ) -> None:
        self._session = session
        self._providers = providers
        self._blob_sink = blob_sink
        self._clock = clock

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Ask once.

        Raises:
            CallFailed: The agent could not be asked, or its task did not complete.
            InvalidSettings: The package for A2A is not installed.
        """
        tool = dispatch.tool.definition
        implementation = tool.implementation
        if not isinstance(implementation, A2aImplementation):
            message = f"tool {tool.name!r} is of kind {implementation.kind!r}, which this runtime does not execute"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        provider = self._providers.require(dispatch.tool, implementation.provider)
        if tool.runs_on == "client":
            return Outcome({"kind": implementation.kind, "url": provider.address, "message": dispatch.input})
        try:
            from toolcrib.kinds.a2a.exchange import AgentTransport, ask_agent  # noqa: PLC0415 - see the module
        except ImportError as problem:
            raise InvalidSettings(missing_extra("an agent by A2A", problem.name, "a2a")) from problem
        way = AgentTransport(dispatch, provider, self._session, self._providers, self._clock)
        try:
            return await ask_agent(dispatch, implementation, way, blob_sink=self._blob_sink, clock=self._clock)
        except CallFailed as failure:
            failure.secrets += way.secrets
            failure.sent = True if way.is_answered else failure.sent
            raise

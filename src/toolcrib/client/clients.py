"""The clients of a server: each group of operations is an attribute.

Written by `python -m tools.rest_client`.
"""

from functools import cached_property

from toolcrib.client.blocking.agentic_tools import AgenticToolsApi
from toolcrib.client.blocking.agents import AgentsApi
from toolcrib.client.blocking.conversations import ConversationsApi
from toolcrib.client.blocking.models import ModelsApi
from toolcrib.client.blocking.providers import ConnectionsApi, ProvidersApi, SecretsApi
from toolcrib.client.blocking.runs import ApprovalsApi, RunsApi
from toolcrib.client.blocking.tools import ToolsApi
from toolcrib.client.blocking.triggers import McpServersApi, ServerApi, TriggersApi
from toolcrib.client.blocking.workflows import WorkflowsApi
from toolcrib.client.groups import AsyncBase, SyncBase
from toolcrib.client.operations.agentic_tools import AsyncAgenticToolsApi
from toolcrib.client.operations.agents import AsyncAgentsApi
from toolcrib.client.operations.conversations import AsyncConversationsApi
from toolcrib.client.operations.models import AsyncModelsApi
from toolcrib.client.operations.providers import AsyncConnectionsApi, AsyncProvidersApi, AsyncSecretsApi
from toolcrib.client.operations.runs import AsyncApprovalsApi, AsyncRunsApi
from toolcrib.client.operations.tools import AsyncToolsApi
from toolcrib.client.operations.triggers import AsyncMcpServersApi, AsyncServerApi, AsyncTriggersApi
from toolcrib.client.operations.workflows import AsyncWorkflowsApi


class AsyncClient(AsyncBase):
    """The asynchronous client of a server.

    Args:
        url: Of the server: `http://127.0.0.1:8700`; else the variable `TOOLCRIB_URL`.
        api_key: `tcb_…`; else the variable `TOOLCRIB_API_KEY`.
        timeout_s: Seconds for one request, of which a run that is waited for has a part; streams have no limit.
        retries: How often a request is sent again after a cut connection, or if the server is not available.

    Example:
        from toolcrib.client import AsyncClient

        async def deals(company: str) -> object:
            async with AsyncClient("http://127.0.0.1:8700", api_key="tcb_...") as client:
                answer = await client.tools.invoke("search_deals", params={"company": company})
                return answer.data
    """

    @cached_property
    def agentic_tools(self) -> AsyncAgenticToolsApi:
        """The operations on agentic tools."""
        return AsyncAgenticToolsApi(self._transport)

    @cached_property
    def agents(self) -> AsyncAgentsApi:
        """The operations on agents."""
        return AsyncAgentsApi(self._transport)

    @cached_property
    def approvals(self) -> AsyncApprovalsApi:
        """The operations on approvals."""
        return AsyncApprovalsApi(self._transport)

    @cached_property
    def connections(self) -> AsyncConnectionsApi:
        """The operations on connections."""
        return AsyncConnectionsApi(self._transport)

    @cached_property
    def conversations(self) -> AsyncConversationsApi:
        """The operations on conversations."""
        return AsyncConversationsApi(self._transport)

    @cached_property
    def mcp_servers(self) -> AsyncMcpServersApi:
        """The operations on mcp servers."""
        return AsyncMcpServersApi(self._transport)

    @cached_property
    def models(self) -> AsyncModelsApi:
        """The operations on models."""
        return AsyncModelsApi(self._transport)

    @cached_property
    def providers(self) -> AsyncProvidersApi:
        """The operations on providers."""
        return AsyncProvidersApi(self._transport)

    @cached_property
    def runs(self) -> AsyncRunsApi:
        """The operations on runs."""
        return AsyncRunsApi(self._transport)

    @cached_property
    def secrets(self) -> AsyncSecretsApi:
        """The operations on secrets."""
        return AsyncSecretsApi(self._transport)

    @cached_property
    def server(self) -> AsyncServerApi:
        """The operations on server."""
        return AsyncServerApi(self._transport)

    @cached_property
    def tools(self) -> AsyncToolsApi:
        """The operations on tools."""
        return AsyncToolsApi(self._transport)

    @cached_property
    def triggers(self) -> AsyncTriggersApi:
        """The operations on triggers."""
        return AsyncTriggersApi(self._transport)

    @cached_property
    def workflows(self) -> AsyncWorkflowsApi:
        """The operations on workflows."""
        return AsyncWorkflowsApi(self._transport)


class Client(SyncBase):
    """The synchronous client of a server, for scripts, notebooks and threads.

    Args:
        url: Of the server: `http://127.0.0.1:8700`; else the variable `TOOLCRIB_URL`.
        api_key: `tcb_…`; else the variable `TOOLCRIB_API_KEY`.
        timeout_s: Seconds for one request, of which a run that is waited for has a part; streams have no limit.
        retries: How often a request is sent again after a cut connection, or if the server is not available.

    Example:
        from toolcrib.client import Client

        def deals(company: str) -> object:
            with Client("http://127.0.0.1:8700", api_key="tcb_...") as client:
                return client.tools.invoke("search_deals", params={"company": company}).data
    """

    @cached_property
    def agentic_tools(self) -> AgenticToolsApi:
        """The operations on agentic tools."""
        return AgenticToolsApi(self._asynchronous.agentic_tools, self._loop)

    @cached_property
    def agents(self) -> AgentsApi:
        """The operations on agents."""
        return AgentsApi(self._asynchronous.agents, self._loop)

    @cached_property
    def approvals(self) -> ApprovalsApi:
        """The operations on approvals."""
        return ApprovalsApi(self._asynchronous.approvals, self._loop)

    @cached_property
    def connections(self) -> ConnectionsApi:
        """The operations on connections."""
        return ConnectionsApi(self._asynchronous.connections, self._loop)

    @cached_property
    def conversations(self) -> ConversationsApi:
        """The operations on conversations."""
        return ConversationsApi(self._asynchronous.conversations, self._loop)

    @cached_property
    def mcp_servers(self) -> McpServersApi:
        """The operations on mcp servers."""
        return McpServersApi(self._asynchronous.mcp_servers, self._loop)

    @cached_property
    def models(self) -> ModelsApi:
        """The operations on models."""
        return ModelsApi(self._asynchronous.models, self._loop)

    @cached_property
    def providers(self) -> ProvidersApi:
        """The operations on providers."""
        return ProvidersApi(self._asynchronous.providers, self._loop)

    @cached_property
    def runs(self) -> RunsApi:
        """The operations on runs."""
        return RunsApi(self._asynchronous.runs, self._loop)

    @cached_property
    def secrets(self) -> SecretsApi:
        """The operations on secrets."""
        return SecretsApi(self._asynchronous.secrets, self._loop)

    @cached_property
    def server(self) -> ServerApi:
        """The operations on server."""
        return ServerApi(self._asynchronous.server, self._loop)

    @cached_property
    def tools(self) -> ToolsApi:
        """The operations on tools."""
        return ToolsApi(self._asynchronous.tools, self._loop)

    @cached_property
    def triggers(self) -> TriggersApi:
        """The operations on triggers."""
        return TriggersApi(self._asynchronous.triggers, self._loop)

    @cached_property
    def workflows(self) -> WorkflowsApi:
        """The operations on workflows."""
        return WorkflowsApi(self._asynchronous.workflows, self._loop)

    @cached_property
    def _asynchronous(self) -> AsyncClient:
        return AsyncClient.around(self._transport)

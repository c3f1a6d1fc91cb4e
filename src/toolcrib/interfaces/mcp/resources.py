"""Resources of the MCP server: runs, their attachments, reference data, and tools that are offered as resources.

`toolcrib://runs/{run_id}` is the state of a run as JSON: status, output or error, cost and what it waits for.
`toolcrib://runs/{run_id}/attachments/{digest}` is the payload of an attachment. A principal reads its own runs and
those that it has a grant for. `toolcrib://reference-data/{provider}/{list}` has the values of a list that are in use,
for principals that may read the provider. To read a tool's resource is a call of the tool.
"""

import base64
import re
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import mcp_types as types

from toolcrib.contracts import Json, JsonObject, NotFound, ToolRevision
from toolcrib.core.policy import permits
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.mcp.offers import Offered, ToolOffers, offer_of, parse_arguments
from toolcrib.interfaces.mcp.results import as_text, why
from toolcrib.kinds.mcp.shape import McpImplementation

Contents: TypeAlias = types.TextResourceContents | types.BlobResourceContents

_RUN: Final = re.compile(r"toolcrib://runs/(?P<run_id>run_[0-9a-z]{1,64})(?:/attachments/(?P<digest>[0-9a-f]{64}))?")
_LIST: Final = re.compile(
    r"toolcrib://reference-data/(?P<provider>[A-Za-z][A-Za-z0-9_.\-]{0,127})/(?P<name>[A-Za-z_][A-Za-z0-9_]{0,127})"
)
OPEN: Final = frozenset({"queued", "running", "awaiting_approval", "awaiting_client", "awaiting_answer"})
"""Statuses of runs that have not ended."""
_PAGE: Final = 50
_JSON: Final = "application/json"

_TEMPLATES: Final = (
    types.ResourceTemplate(
        uri_template="toolcrib://runs/{run_id}",
        name="run",
        title="Run",
        description="The state of a call: status, output or error, cost, and what it waits for",
        mime_type=_JSON,
    ),
    types.ResourceTemplate(
        uri_template="toolcrib://runs/{run_id}/attachments/{digest}",
        name="attachment",
        title="Attachment",
        description="What accompanies the output of a call: an image, a table, or a whole output that was cut",
    ),
    types.ResourceTemplate(
        uri_template="toolcrib://reference-data/{provider}/{list}",
        name="reference_data",
        title="Reference data",
        description="The valid values of an argument, with their labels, as they were read last",
        mime_type=_JSON,
    ),
)


class McpResources:
    """The resources that a client is offered.

    Args:
        offers: What the client is offered.
    """

    def __init__(self, offers: ToolOffers) -> None:
        self._offers = offers
        self._crib = offers.crib

    async def page(self, cursor: str | None) -> types.ListResourcesResult:
        """The resources of tools and the reference data, then the runs of the principal, newest first.

        Args:
            cursor: Id of a run: only older ones. Null for the beginning.
        """
        who = await self._crib.authorize()
        runs = await self._crib.store.journal.runs(who.realm, made_by=who.id, before=cursor, limit=_PAGE + 1)
        shown = runs[:_PAGE]
        resources = [] if cursor is not None else [*await self._fixed(), *await self._lists()]
        resources += [
            types.Resource(
                uri=f"toolcrib://runs/{run.run_id}",
                name=run.run_id,
                title=f"{run.request.tool_name}, {run.status.replace('_', ' ')}",
                mime_type=_JSON,
            )
            for run in shown
            if await self._offers.runs_of(run.request.tool_name)
        ]
        more = len(runs) > _PAGE
        return types.ListResourcesResult(resources=resources, next_cursor=shown[-1].run_id if more else None)

    async def templates(self) -> types.ListResourceTemplatesResult:
        """The addresses of runs and of their attachments, and those of tools with variables."""
        found = [
            types.ResourceTemplate(
                uri_template=offer_of(each.tool).uri or "",
                name=each.name,
                title=each.tool.definition.title,
                description=each.tool.definition.description,
                mime_type=offer_of(each.tool).mime_type,
            )
            for each in await self._offers.all("resource")
            if offer_of(each.tool).variables
        ]
        return types.ListResourceTemplatesResult(resource_templates=[*found, *_TEMPLATES])

    async def read(self, uri: str) -> types.ReadResourceResult:
        """The contents of a resource.

        Raises:
            NotFound: There is no such resource for this principal, or the tool has failed.
            PermissionDenied: The run belongs to another principal.
        """
        reference = _LIST.fullmatch(uri)
        if reference is not None:
            contents = [await self._read_list(uri, reference["provider"], reference["name"])]
            return types.ReadResourceResult(contents=list(contents))
        found = _RUN.fullmatch(uri)
        if found is None:
            contents = await self._call(uri)
            return types.ReadResourceResult(contents=list(contents))
        run_id = found["run_id"]
        await self._check_run(run_id)
        if found["digest"] is not None:
            contents = [await _attachment(self._crib, uri, run_id, found["digest"])]
        else:
            state = await self._crib.executions.respond(run_id)
            text = state.model_dump_json(exclude_none=True)
            contents = [types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)]
        return types.ReadResourceResult(contents=list(contents))

    async def open_state(self, uri: str) -> str | None:
        """The state of a run that has not ended, as JSON; null if it has, or if the address is not one of a run.

        Raises:
            NotFound: There is no such run for this principal.
            PermissionDenied: The run belongs to another principal.
        """
        found = _RUN.fullmatch(uri)
        if found is None or found["digest"] is not None:
            return None
        await self._check_run(found["run_id"])
        state = await self._crib.executions.respond(found["run_id"])
        return state.model_dump_json(exclude_none=True) if state.status in OPEN else None

    async def find(self, uri: str) -> ToolRevision | None:
        """The tool behind an address or behind a template; null if none is offered."""
        for each in await self._offers.all("resource"):
            offer = offer_of(each.tool)
            if uri == offer.uri or offer.arguments_of(uri) is not None:
                return each.tool
        return None

    async def _check_run(self, run_id: str) -> None:
        """Refuse a run of a tool that the virtual server does not select."""
        if self._offers.server is None:
            return
        run = await self._crib.executions.run_for(run_id, self._crib.principal, "read")
        if not await self._offers.runs_of(run.request.tool_name):
            msg = f"run {run_id} is of a tool that this MCP server does not offer; read it at another address"
            raise NotFound(msg)

    async def _fixed(self) -> list[types.Resource]:
        offered = await self._offers.all("resource")
        return [_resource(each) for each in offered if not offer_of(each.tool).variables]

    async def _lists(self) -> list[types.Resource]:
        await self._crib.authorize(newest=True)
        return [
            types.Resource(
                uri=f"toolcrib://reference-data/{each.provider}/{each.name}",
                name=each.name,
                title=f"{each.name} of {each.provider}",
                description=f"Valid values that {each.provider} declares",
                mime_type=_JSON,
            )
            for each in await self._crib.reference_data.list()
            if await self._may_read(each.provider)
        ]

    async def _read_list(self, uri: str, provider: str, name: str) -> Contents:
        if not await self._may_read(provider):
            raise _unknown(uri)
        found = await self._crib.reference_data.values(provider, name)
        return types.TextResourceContents(uri=uri, mime_type=_JSON, text=found.model_dump_json())

    async def _may_read(self, provider: str) -> bool:
        who = await self._crib.authorize(newest=True)
        return permits(who.grants, f"ai://providers/{provider}/read") and await self._offers.concerns(provider)

    async def _call(self, uri: str) -> Sequence[Contents]:
        crib = self._crib
        tool = await self.find(uri)
        arguments = None if tool is None else offer_of(tool).arguments_of(uri)
        if tool is None or arguments is None:
            raise _unknown(uri)
        result = await crib.invoke(f"{tool.name}@{tool.content_hash}", parse_arguments(tool, arguments))
        if not result.ok:
            raise NotFound(f"run {result.run_id} of {tool.name!r} has no output: {why(result)}")
        envelope = result.envelopes[-1] if result.envelopes else None
        kept = [] if envelope is None else [each.digest for each in envelope.attachments if each.digest is not None]
        if kept:
            return [await _attachment(crib, uri, result.run_id, digest) for digest in kept]
        output, kind = _unwrap(tool, result.summary.output)
        kind = offer_of(tool).mime_type or kind or ("text/plain" if isinstance(output, str) else _JSON)
        return [types.TextResourceContents(uri=uri, mime_type=kind, text=as_text(output))]


def _unknown(uri: str) -> NotFound:
    return NotFound(f"there is no resource {uri[:200]!r}; list resources and templates for those there are")


def _unwrap(tool: ToolRevision, output: Json) -> tuple[Json, str | None]:
    """The content and the type of a resource that another MCP server has; every other output is the content itself."""
    if not isinstance(tool.definition.implementation, McpImplementation) or not isinstance(output, dict):
        return output, None
    read = cast("JsonObject", output)
    kind = read.get("media_type")
    return read.get("content", output), str(kind) if kind else None


async def _attachment(crib: ActingCrib, uri: str, run_id: str, digest: str) -> Contents:
    described, payload = await crib.executions.read_attachment(run_id, digest)
    kind = described.content_type or "application/octet-stream"
    return types.BlobResourceContents(uri=uri, mime_type=kind, blob=base64.b64encode(payload).decode())


def _resource(offered: Offered) -> types.Resource:
    definition, offer = offered.tool.definition, offer_of(offered.tool)
    return types.Resource(
        uri=offer.uri or "",
        name=offered.name,
        title=definition.title,
        description=definition.description,
        mime_type=offer.mime_type,
    )

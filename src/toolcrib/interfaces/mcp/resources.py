"""Runs and their attachments as resources of the MCP server.

`toolcrib://runs/{run_id}` is the state of a run as JSON: status, output or error, cost and what it waits for.
`toolcrib://runs/{run_id}/attachments/{digest}` is the payload of an attachment. A principal reads its own runs and
those that it has a grant for.
"""

import base64
import re
from typing import Final

import mcp_types as types

from toolcrib.contracts import NotFound
from toolcrib.crib import ActingCrib

_RUN: Final = re.compile(r"toolcrib://runs/(?P<run_id>run_[0-9a-z]{1,64})(?:/attachments/(?P<digest>[0-9a-f]{64}))?")
_PAGE: Final = 50


class RunResources:
    """The runs of a crib as MCP clients read them."""

    async def page(self, crib: ActingCrib, cursor: str | None) -> types.ListResourcesResult:
        """The newest runs of the principal, newest first.

        Args:
            crib: Acts as the client's principal.
            cursor: Id of a run: only older ones. Null for the newest.
        """
        who = await crib.authorize()
        runs = await crib.store.journal.runs(who.realm, made_by=who.id, before=cursor, limit=_PAGE + 1)
        shown = runs[:_PAGE]
        resources = [
            types.Resource(
                uri=f"toolcrib://runs/{run.run_id}",
                name=run.run_id,
                title=f"{run.request.tool_name}, {run.status.replace('_', ' ')}",
                mime_type="application/json",
            )
            for run in shown
        ]
        more = len(runs) > _PAGE
        return types.ListResourcesResult(resources=resources, next_cursor=shown[-1].run_id if more else None)

    def templates(self) -> types.ListResourceTemplatesResult:
        """The addresses of runs and of their attachments."""
        run = types.ResourceTemplate(
            uri_template="toolcrib://runs/{run_id}",
            name="run",
            title="Run",
            description="The state of a call: status, output or error, cost, and what it waits for",
            mime_type="application/json",
        )
        attachment = types.ResourceTemplate(
            uri_template="toolcrib://runs/{run_id}/attachments/{digest}",
            name="attachment",
            title="Attachment",
            description="What accompanies the output of a call: an image, a table, or a whole output that was cut",
        )
        return types.ListResourceTemplatesResult(resource_templates=[run, attachment])

    async def read(self, crib: ActingCrib, uri: str) -> types.ReadResourceResult:
        """The contents of a resource.

        Raises:
            NotFound: There is no such resource.
            PermissionDenied: It belongs to another principal.
        """
        found = _RUN.fullmatch(uri)
        if found is None:
            msg = f"there is no resource {uri[:200]!r}; resources/list lists the runs"
            raise NotFound(msg)
        if found["digest"] is not None:
            described, payload = await crib.executions.read_attachment(found["run_id"], found["digest"])
            kind = described.content_type or "application/octet-stream"
            contents: types.TextResourceContents | types.BlobResourceContents = types.BlobResourceContents(
                uri=uri, mime_type=kind, blob=base64.b64encode(payload).decode()
            )
        else:
            state = await crib.executions.respond(found["run_id"])
            contents = types.TextResourceContents(
                uri=uri, mime_type="application/json", text=state.model_dump_json(exclude_none=True)
            )
        return types.ReadResourceResult(contents=[contents])

"""Drafts of workflows as the store keeps them: under the name of the workflow, with revisions of their own.

They are read from the store each time, because nothing runs them and few are looked at. What may be a draft, and what
becomes of one, is not decided here.
"""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from toolcrib.contracts import Conflict, InvalidDefinition, NotFound, Principal, content_hash
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowDraft, WorkflowProblem, WorkflowStep
from toolcrib.core.registry import why_unreadable
from toolcrib.infrastructure.store import Definition, Definitions

_STORED: Final = {"definition", "note", "authored_by", "run_id", "tainted_by"}
_VERSION: Final = "1.0.0"
"""Of the row; the definition in it has one of its own."""


class Drafts:
    """The drafts of a crib.

    Args:
        definitions: Where they are kept.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    async def save(self, draft: WorkflowDraft, who: Principal, *, after: int | None) -> WorkflowDraft:
        """Append a revision; the same content as the newest one is that revision.

        Args:
            draft: What is to be kept; its number is assigned here.
            who: In whose realm and name.
            after: Number of the revision that the author has changed; 0 if there is none, null for any.

        Raises:
            Conflict: Another revision has been saved since `after`.
        """
        body = draft.model_dump(mode="json", include=_STORED)
        new = Definition(
            kind="draft",
            realm=who.realm,
            name=draft.definition.name,
            version=_VERSION,
            revision=0,
            content_hash=content_hash(body),
            body=body,
            made_by=who.id,
            created_at=draft.created_at,
        )
        stored = await self._definitions.save(new, after=after)
        told = {"revision": stored.revision, "made_by": stored.made_by, "created_at": stored.created_at}
        return draft.model_copy(update=told)

    async def current(self, realm: str) -> Sequence[WorkflowDraft]:
        """The newest revision of each, by name. In place of one that cannot be read stands what is wrong with it."""
        newest = {stored.name: stored for stored in await self._definitions.revisions("draft", realm)}
        return [_read(newest[name]) for name in sorted(newest)]

    async def find(self, realm: str, name: str) -> WorkflowDraft | None:
        """The newest revision, or null.

        Raises:
            InvalidDefinition: Another release has saved it, and this one cannot read it.
        """
        stored = await self._definitions.revisions("draft", realm, name)
        return _required(stored[-1]) if stored else None

    async def require(self, realm: str, name: str, *, revision: int | None = None) -> WorkflowDraft:
        """The newest revision.

        Args:
            realm: Where it is.
            name: Of the workflow.
            revision: The number that it must have; null for any.

        Raises:
            NotFound: There is none of this name.
            InvalidDefinition: As `find`.
            Conflict: It has another number.
        """
        found = await self.find(realm, name)
        if found is None:
            raise NotFound(f"there is no draft {name!r} in realm {realm!r}; list the drafts for the names there are")
        if revision is not None and found.revision != revision:
            msg = f"draft {name!r} is at revision {found.revision}, and not at {revision}, which was looked at"
            raise Conflict(f"{msg}; look at it as it is now")
        return found

    async def last_two(self, realm: str, name: str) -> tuple[WorkflowDraft | None, WorkflowDraft]:
        """The newest revision, behind the one before it, or null if it is the first.

        Raises:
            NotFound: There is none of this name.
            InvalidDefinition: As `find`.
        """
        last = await self.require(realm, name)
        stored = await self._definitions.revisions("draft", realm, name)
        return (_required(stored[-2]) if len(stored) > 1 else None), last

    async def remove(self, realm: str, name: str) -> bool:
        """Take a draft out; false if there is none."""
        return await self._definitions.remove("draft", realm, name) > 0


def _read(stored: Definition) -> WorkflowDraft:
    """A stored draft; one that cannot be read has an empty definition, and the reason as its problem."""
    told: dict[str, Any] = {"revision": stored.revision, "made_by": stored.made_by, "created_at": stored.created_at}
    try:
        return WorkflowDraft.model_validate({**stored.body, **told})
    except ValidationError as problem:
        why = WorkflowProblem(path="", message=f"draft {stored.name!r} {why_unreadable(problem)}")
        empty = WorkflowDefinition(name=stored.name, status="disabled", steps=(WorkflowStep(name="unreadable"),))
        return WorkflowDraft(definition=empty, problems=(why,), **told)


def _required(stored: Definition) -> WorkflowDraft:
    draft = _read(stored)
    if draft.problems:
        raise InvalidDefinition(draft.problems[0].message)
    return draft

"""How a list that comes in pages is read to its end: a union tagged by `kind`.

All kinds share where the items are, how large a page may be and when to stop. They differ in how the next page is
found. A following request stays on the origin of the operation or of its provider, whatever the answer says.
"""

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Discriminator, Field, Tag

from toolcrib.contracts.base.base import Contract, JsonObject


class _Pages(Contract):
    """What every kind of paging says."""

    items: str = "$"
    """The list that is joined over the pages: its name in the answer, or an RFC 9535 path of names to it
    (`$.data.rows`; `$` if the answer is the list)."""
    limit_argument: str | None = None
    """Argument for the page size; filled with `page_size` where the caller gives none."""
    page_size: int | None = Field(default=None, ge=1)
    """The largest page that the other side gives."""
    max_pages: int = Field(default=100, ge=1)


class CursorPaging(_Pages):
    """A response names the next page; the cursor goes back into the request."""

    kind: Literal["cursor"] = "cursor"
    cursor_in: str
    """Argument that takes the cursor; a JSON pointer (`/body/page/after`) reaches into an argument."""
    cursor_out: str
    """RFC 9535 path of the next cursor in the response, or `header:NAME`; nothing found means the last page."""
    first: str | int | None = None
    """Cursor of the first page, for systems that want one in every request; null if it is left out."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return None if self.cursor_in.startswith("/") else self.cursor_in


class OffsetPaging(_Pages):
    """The request says how many items to skip."""

    kind: Literal["offset"] = "offset"
    argument: str
    """Argument that takes the number of items to skip, from 0 on."""
    total: str | None = None
    """RFC 9535 path of the number of all items; null if the answer does not tell, and a short page is the last."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


class PageNumberPaging(_Pages):
    """The request names the page by its number."""

    kind: Literal["page"] = "page"
    argument: str
    """Argument that takes the page's number."""
    first: int = 1
    """Number of the first page."""
    total: str | None = None
    """RFC 9535 path of the number of all items."""
    total_pages: str | None = None
    """RFC 9535 path of the number of all pages. With neither, a short page is the last."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


class LinkPaging(_Pages):
    """The `Link` header names the next page's address (RFC 8288, `rel="next"`)."""

    kind: Literal["link"] = "link"
    argument: str | None = None
    """Argument with which a caller may ask for one page, if the operation has one."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


class NextUrlPaging(_Pages):
    """The answer's body names the next page's address."""

    kind: Literal["next_url"] = "next_url"
    url_out: str
    """RFC 9535 path of the address (`$.next`, `$['@odata.nextLink']`); nothing found means the last page."""
    argument: str | None = None
    """Argument with which a caller may ask for one page, if the operation has one."""

    @property
    def start_argument(self) -> str | None:
        """The argument with which a caller asks for one page."""
        return self.argument


def _kind_of(value: Any) -> str | None:
    """The tag; what was stored before there were kinds has none and is of the first."""
    if isinstance(value, dict):
        return cast("JsonObject", value).get("kind", "cursor")
    return getattr(value, "kind", None)


Paging: TypeAlias = Annotated[
    Annotated[CursorPaging, Tag("cursor")]
    | Annotated[OffsetPaging, Tag("offset")]
    | Annotated[PageNumberPaging, Tag("page")]
    | Annotated[LinkPaging, Tag("link")]
    | Annotated[NextUrlPaging, Tag("next_url")],
    Discriminator(_kind_of),
]

"""What the author of an import says better than the document: a search that is a POST, a limit, a name."""

from toolcrib.contracts import CachePolicy, Contract, JsonObject, Paging, RateLimit, RetryPolicy, SideEffects


class ToolOverride(Contract):
    """Replaces what was derived from the document, field by field; a field that is not given stays derived."""

    name: str | None = None
    description: str | None = None
    side_effects: SideEffects | None = None
    idempotent: bool | None = None
    timeout_s: float | None = None
    """Seconds for all attempts of one call."""
    rate_limit: RateLimit | None = None
    retry: RetryPolicy | None = None
    cache: CachePolicy | None = None
    cache_ttl_s: float | None = None
    paging: Paging | None = None
    """How pages are followed; null, if given, for one page per call."""

    def fields(self) -> JsonObject:
        """The given fields of the tool's definition."""
        return {
            name: value for name in self.model_fields_set - {"paging"} if (value := getattr(self, name)) is not None
        }

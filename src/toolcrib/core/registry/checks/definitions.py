"""Is a definition well formed? Checked when it is saved, so that no call meets an invalid schema.

What only one kind of tool can say is checked in the folder of that kind.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar, cast

from toolcrib.contracts import (
    SECRET_REFERENCE,
    InvalidDefinition,
    InvalidExpression,
    InvalidInput,
    InvalidSettings,
    JsonObject,
    JsonSchema,
    NotFound,
    ToolDefinition,
    canonical,
)
from toolcrib.core.expressions.jsonpath import check_path
from toolcrib.core.registry.checks.versions import Version
from toolcrib.core.registry.schema.validation import SchemaValidator, checked_schema

MOST_METADATA_BYTES: Final = 16 * 1024
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "string")
_SEGMENT: Final = re.compile(r"[^/*]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+")
_SECURITY_URI: Final = re.compile(r"ai://[^/*]+(?:/[^/*]+)+")


T = TypeVar("T")

_MOST_TOLD: Final = 20
"""Problems in one message; `problems` of the error has all of them."""
_PREFIX: Final = re.compile(r"^(?:tool|agent|agentic tool|workflow) '[^']*': ")


class DefinitionFaults:
    """Collects what is wrong with one definition, so that its author is told all of it at once.

    Args:
        subject: What the messages call it: `agent 'desk'`.

    Example:
        faults = DefinitionFaults("agent 'desk'")
        faults.add("/tools/0", "there is no tool 'serch'")
        print(faults.texts)
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._first: InvalidInput | NotFound | InvalidSettings | None = None
        self._problems: dict[str, JsonObject] = {}
        """By the text."""

    @property
    def texts(self) -> Sequence[str]:
        """What is wrong, without the name of the definition."""
        return tuple(self._problems)

    def add(self, path: str, problem: str) -> None:
        """Something is wrong at a place, a JSON pointer into the author's document; empty for the whole."""
        self._take(InvalidDefinition(f"{self._subject}: {problem}"), path)

    def attempt(self, check: Callable[[], T], otherwise: T, path: str = "") -> T:
        """What a check returns; if it refuses the definition, that is kept, and something else is returned."""
        try:
            return check()
        except (InvalidInput, NotFound, InvalidSettings) as problem:
            self._take(problem, path)
            return otherwise

    def tell(self) -> None:
        """Refuse the definition if anything is wrong with it: one problem as it was raised, several together.

        Raises:
            InvalidDefinition: Several problems, or the only one.
            NotFound: The only problem.
            InvalidSettings: Likewise.
        """
        if self._first is None:
            return
        problems = tuple(self._problems.values())
        if len(problems) == 1:
            if isinstance(self._first, InvalidInput):
                self._first.problems = problems
            raise self._first
        texts = self.texts
        more = f"; and {len(texts) - _MOST_TOLD} more" if len(texts) > _MOST_TOLD else ""
        listed = "; ".join(texts[:_MOST_TOLD])
        raise InvalidDefinition(f"{self._subject} has {len(texts)} problems: {listed}{more}", problems)

    def _take(self, problem: InvalidInput | NotFound | InvalidSettings, path: str) -> None:
        self._first = self._first or problem
        told = problem.problems if isinstance(problem, InvalidInput) else ()
        for each in told or ({"path": path, "problem": str(problem)},):
            text = _PREFIX.sub("", str(each["problem"]))
            self._problems.setdefault(text, {"path": each["path"], "problem": text})


def check_definition(definition: ToolDefinition) -> None:
    """Refuse a definition that could not run; all that is wrong is told at once.

    Raises:
        InvalidDefinition: Names the tool, the fields, what is wrong and what to do.
    """
    try:
        for check, _ in _CHECKS:
            check(definition)
    except (InvalidInput, NotFound, InvalidSettings):
        found = DefinitionFaults(f"tool {definition.name!r}")
        for check, path in _CHECKS:
            found.attempt(partial(check, definition), None, path)
        found.tell()


def _check_version(definition: ToolDefinition) -> None:
    Version.parse(definition.version)


def _check_type(definition: ToolDefinition) -> None:
    """Arguments are an object."""
    kind = definition.input_schema.get("type", "object")
    if kind != "object" and (not isinstance(kind, str) or kind in _TYPES):  # what is no type is told of the schema
        msg = f"tool {definition.name!r}: input_schema has type {kind!r}; arguments are an object, so use type 'object'"
        raise InvalidDefinition(msg)


def _check_cache(definition: ToolDefinition) -> None:
    """Results are kept for some time, and only of tools that change nothing."""
    if definition.cache == "ttl" and definition.cache_ttl_s is None:
        msg = f"tool {definition.name!r}: cache is 'ttl' without cache_ttl_s; give the seconds"
        raise InvalidDefinition(msg)
    if definition.cache != "none" and definition.side_effects == "writes":
        msg = f"tool {definition.name!r} writes, so its results cannot be cached; set cache to 'none'"
        raise InvalidDefinition(msg)


def _check_rules(definition: ToolDefinition) -> None:
    """Error handling names a tool where it falls back on one, and nowhere else."""
    for rule in definition.error_handling:
        if (rule.action == "fallback") is not (rule.tool is not None):
            what = f"the rule for {rule.when!r} has action {rule.action!r} and tool {rule.tool!r}"
            msg = f"tool {definition.name!r}: {what}"
            raise InvalidDefinition(f"{msg}; name the tool that is called instead for 'fallback', and for nothing else")


def _check_category(definition: ToolDefinition) -> None:
    """A category is a segment of a tool's URI."""
    if not _SEGMENT.fullmatch(definition.category):
        msg = f"tool {definition.name!r}: category {definition.category!r} is not a segment of a security URI"
        raise InvalidDefinition(f"{msg}; give it at least one character, none of them / or *")


def _check_security(definition: ToolDefinition) -> None:
    """Permissions name a tool by its URI, so that must be one, and no pattern."""
    if definition.security_uri is not None and not _SECURITY_URI.fullmatch(definition.security_uri):
        msg = f"tool {definition.name!r}: security_uri {definition.security_uri!r} is invalid"
        raise InvalidDefinition(f"{msg}; write e.g. ai://tools/crm/search_deals/execute, without *")


def _check_mcp(definition: ToolDefinition) -> None:
    """A resource is read at an address from which all its arguments come; only what changes nothing is read."""
    offer = definition.mcp
    if offer is None:
        return
    if definition.side_effects == "writes":
        msg = f"tool {definition.name!r} writes, so MCP clients cannot be offered it as a {offer.show_as}"
        raise InvalidDefinition(f"{msg}; set side_effects to 'reads' if that is what it does, or leave mcp out")
    if (offer.show_as == "resource") is not (offer.uri is not None and _URI.fullmatch(offer.uri) is not None):
        msg = f"tool {definition.name!r}: mcp has show_as {offer.show_as!r} and uri {offer.uri!r}"
        raise InvalidDefinition(f"{msg}; give a resource an address such as deals://{{deal_id}}, and a prompt none")
    if offer.show_as == "resource":
        known = cast("JsonObject", definition.input_schema.get("properties", {}))
        needed = cast("list[str]", definition.input_schema.get("required", []))
        wrong = sorted({*offer.variables} - known.keys()) or sorted({*needed} - {*offer.variables})
        if wrong or len({*offer.variables}) < len(offer.variables):
            what = f"argument {wrong[0]!r} stands in only one of" if wrong else "a variable stands twice in"
            msg = f"tool {definition.name!r}: {what} mcp.uri {offer.uri!r} and input_schema"
            raise InvalidDefinition(f"{msg}; name each required argument once in the address, as {{argument}}")


def _check_metadata(definition: ToolDefinition) -> None:
    if not definition.metadata:
        return
    try:
        size = len(canonical(definition.metadata))
    except InvalidInput as problem:
        raise InvalidDefinition(f"tool {definition.name!r}: metadata is not JSON: {problem}") from None
    if size > MOST_METADATA_BYTES:
        msg = f"tool {definition.name!r}: metadata has {size} bytes of JSON, at most {MOST_METADATA_BYTES} are kept"
        raise InvalidDefinition(f"{msg}; keep large data elsewhere, and name its place")


def _check_secrets(definition: ToolDefinition) -> None:
    """Secrets are named and never held; what stands in place of a reference may be one, so it is not repeated."""
    for secret in definition.secrets:
        if not SECRET_REFERENCE.fullmatch(secret.reference):
            msg = (
                f"tool {definition.name!r}: its secret {secret.name!r} is a text of {len(secret.reference)} characters"
            )
            raise InvalidDefinition(f"{msg}; write a reference such as ${{env:CRM_TOKEN}} or ${{secret:CRM_TOKEN}}")


def _check_schema(name: str, field: str, schema: JsonSchema) -> SchemaValidator:
    try:
        return checked_schema(schema)
    except InvalidDefinition as error:
        msg = f"tool {name!r}: {field} is not a JSON Schema 2020-12 that can be used offline: {error}"
        raise InvalidDefinition(msg) from error


def _check_input_schema(definition: ToolDefinition) -> None:
    """With its defaults: they are filled in first, so an invalid one would refuse the calls that leave it out."""
    name, validator = definition.name, _check_schema(definition.name, "input_schema", definition.input_schema)
    wrong = validator.invalid_defaults
    if wrong:
        msg = f"tool {name!r}: the default of {wrong[0].path} in input_schema is not valid: {wrong[0].problem}"
        raise InvalidDefinition(f"{msg}; correct it or take it away")


def _check_output_schema(definition: ToolDefinition) -> None:
    if definition.output_schema is not None:
        _check_schema(definition.name, "output_schema", definition.output_schema)


def _check_select(definition: ToolDefinition) -> None:
    _check_path(definition.name, "select", definition.select)


def _check_cost(definition: ToolDefinition) -> None:
    _check_path(definition.name, "cost_from", definition.cost_from)


def _check_path(name: str, field: str, path: str | None) -> None:
    if path is None:
        return
    try:
        check_path(path)
    except InvalidExpression as error:
        msg = f"tool {name!r}: {field} {path!r} is not a path of RFC 9535: {error}"
        raise InvalidDefinition(msg) from error


_CHECKS: Final[Sequence[tuple[Callable[[ToolDefinition], None], str]]] = (
    (_check_version, "/version"),
    (_check_category, "/category"),
    (_check_security, "/security_uri"),
    (_check_mcp, "/mcp"),
    (_check_metadata, "/metadata"),
    (_check_secrets, "/secrets"),
    (_check_input_schema, "/input_schema"),
    (_check_output_schema, "/output_schema"),
    (_check_select, "/select"),
    (_check_cost, "/cost_from"),
    (_check_rules, "/error_handling"),
    (_check_type, "/input_schema/type"),
    (_check_cache, "/cache"),
)
"""What is checked, and the place in the definition that is named if it is wrong."""

"""Is a definition well formed? Checked when it is saved, so that no call meets an invalid schema.

What only one kind of tool can say is checked in the folder of that kind.
"""

import re
from typing import Final

from toolcrib.contracts import SECRET_REFERENCE, InvalidDefinition, InvalidExpression, JsonSchema, ToolDefinition
from toolcrib.core.expressions.jsonpath import check_path
from toolcrib.core.registry.checks.versions import Version
from toolcrib.core.registry.schema.validation import compile_schema

_SEGMENT: Final = re.compile(r"[^/*]+")
_SECURITY_URI: Final = re.compile(r"ai://[^/*]+(?:/[^/*]+)+")


def check_definition(definition: ToolDefinition) -> None:
    """Refuse a definition that could not run.

    Raises:
        InvalidDefinition: Names the tool, the field, what is wrong and what to do.
    """
    Version.parse(definition.version)
    _check_security(definition)
    _check_secrets(definition)
    _check_schema(definition.name, "input_schema", definition.input_schema)
    if definition.output_schema is not None:
        _check_schema(definition.name, "output_schema", definition.output_schema)
    _check_defaults(definition)
    _check_path(definition.name, "select", definition.select)
    _check_path(definition.name, "cost_from", definition.cost_from)
    _check_rules(definition)
    kind = definition.input_schema.get("type", "object")
    if kind != "object":
        msg = f"tool {definition.name!r}: input_schema has type {kind!r}; arguments are an object, so use type 'object'"
        raise InvalidDefinition(msg)
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


def _check_security(definition: ToolDefinition) -> None:
    """Permissions name a tool by its URI, so that must be one, and no pattern."""
    if not _SEGMENT.fullmatch(definition.category):
        msg = f"tool {definition.name!r}: category {definition.category!r} is no segment of a security URI"
        raise InvalidDefinition(f"{msg}; give it at least one character, none of them / or *")
    if definition.security_uri is not None and not _SECURITY_URI.fullmatch(definition.security_uri):
        msg = f"tool {definition.name!r}: security_uri {definition.security_uri!r} is none"
        raise InvalidDefinition(f"{msg}; write e.g. ai://tools/crm/search_deals/execute, without *")


def _check_secrets(definition: ToolDefinition) -> None:
    """Secrets are named and never held; what stands in place of a reference may be one, so it is not repeated."""
    for secret in definition.secrets:
        if not SECRET_REFERENCE.fullmatch(secret.reference):
            msg = (
                f"tool {definition.name!r}: its secret {secret.name!r} is a text of {len(secret.reference)} characters"
            )
            raise InvalidDefinition(f"{msg}; write a reference such as ${{env:CRM_TOKEN}} or ${{secret:CRM_TOKEN}}")


def _check_schema(name: str, field: str, schema: JsonSchema) -> None:
    try:
        compile_schema(schema)
    except InvalidDefinition as error:
        msg = f"tool {name!r}: {field} is not a JSON Schema 2020-12 that can be used offline: {error}"
        raise InvalidDefinition(msg) from error


def _check_path(name: str, field: str, path: str | None) -> None:
    if path is None:
        return
    try:
        check_path(path)
    except InvalidExpression as error:
        msg = f"tool {name!r}: {field} {path!r} is not a path of RFC 9535: {error}"
        raise InvalidDefinition(msg) from error


def _check_defaults(definition: ToolDefinition) -> None:
    """A default is filled in before arguments are checked: an invalid one would refuse the calls that leave it out."""
    wrong = compile_schema(definition.input_schema).invalid_defaults()
    if wrong:
        msg = (
            f"tool {definition.name!r}: the default of {wrong[0].path} in input_schema is not valid: {wrong[0].problem}"
        )
        raise InvalidDefinition(f"{msg}; correct it or take it away")

"""JSON Merge Patch (RFC 7396): what is null goes, what is given replaces, objects are merged."""

from typing import Any, TypeVar, cast

from pydantic import ValidationError

from toolcrib.contracts import Contract, JsonObject
from toolcrib.interfaces.server.http.errors import located

ContractT = TypeVar("ContractT", bound=Contract)


def patched(contract: type[ContractT], before: JsonObject, patch: JsonObject) -> ContractT:
    """A contract as a patch makes it.

    Raises:
        InvalidInput: It is not valid; each problem is named with its place.
    """
    try:
        return contract.model_validate(merged(before, patch))
    except ValidationError as problem:
        raise located(problem) from problem


def merged(target: Any, patch: Any) -> Any:
    """The target as the patch makes it."""
    if not isinstance(patch, dict):
        return patch
    changes = cast("JsonObject", patch)
    result: JsonObject = dict(cast("JsonObject", target)) if isinstance(target, dict) else {}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result

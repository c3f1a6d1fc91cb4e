"""Writes a folder of documents from a store: the inverse of applying one.

One file has all versions of one thing, in a folder for its kind. Order and formatting depend on the content alone.
"""

from base64 import encodebytes
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from toolcrib.contracts import InvalidInput, JsonObject, NotFound, ToolDefinition
from toolcrib.crib.crib import Crib
from toolcrib.crib.project.planning import SHOWN
from toolcrib.crib.project.writing import document_of
from toolcrib.infrastructure.store import Definition
from toolcrib.kinds.grpc.shape import GrpcImplementation

HEADER: Final = "# Written by toolcrib export."
_WIDTH: Final = 120
_SHORT: Final = 16
"""Characters of a digest that name its file."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - as in PyYAML
        """Indent the items of lists too."""
        del indentless
        super().increase_indent(flow, indentless=False)


def _text(dumper: Any, value: str) -> Any:
    lines = value.split("\n")
    is_block = len(lines) > 1 and all(line == line.rstrip() and line.isprintable() for line in lines)
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if is_block else None)


_Dumper.add_representer(str, _text)


async def project_files(crib: Crib) -> Mapping[str, str]:
    """The files of a project that is equal to the definitions of a crib's realm, by relative path.

    Args:
        crib: Has the definitions.

    Example:
        from toolcrib.crib.project import project_files

        files = await project_files(crib)
        print(sorted(files))
    """
    await crib.authorize(newest=True)
    found: dict[str, dict[str, JsonObject]] = {}
    digests: set[str] = set()
    for kind in SHOWN:
        for row in await crib.store.definitions.revisions(kind, crib.principal.realm):
            name, document = document_of(row)
            found.setdefault(f"{name}s/{row.name}.yaml", {})[row.version] = document
            if name == "tool":
                digests |= _named_blobs(row)
    for digest in digests:
        found[f"blobs/{digest[:_SHORT]}.yaml"] = {"": await _blob(crib, digest)}
    return {path: _file(versions.values()) for path, versions in sorted(found.items())}


def _named_blobs(row: Definition) -> set[str]:
    """The digests of the blobs without which a tool cannot be called."""
    implementation = ToolDefinition.model_validate(row.body).implementation
    return {implementation.descriptors} if isinstance(implementation, GrpcImplementation) else set()


async def _blob(crib: Crib, digest: str) -> JsonObject:
    try:
        data = await crib.store.blobs.get(crib.principal.realm, digest)
    except NotFound as problem:
        msg = f"the store lacks the descriptors {digest} of a gRPC tool; import its provider again"
        raise NotFound(msg) from problem
    return {"kind": "blob", "name": digest, "base64": encodebytes(data).decode()}


def _file(documents: Iterable[JsonObject]) -> str:
    parts = (
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH) for document in documents
    )
    return f"{HEADER}\n" + "---\n".join(parts)


def write_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write files into a folder, and remove those that an earlier export wrote and this one does not.

    Args:
        folder: Is made if it is not there.
        files: Text by relative path.

    Returns:
        The paths that were removed.

    Raises:
        InvalidInput: A file that no export wrote is in the way, or the folder cannot be written.
    """
    taken = [path for path in files if (folder / path).exists() and not _is_ours(folder / path)]
    if taken:
        msg = f"{folder / taken[0]} was not written by an export; move it, or export into another folder"
        raise InvalidInput(msg)
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        stale = [each for each in sorted(folder.glob("*/*.yaml")) if str(each.relative_to(folder)) not in files]
        removed = [each for each in stale if _is_ours(each)]
        for each in removed:
            each.unlink()
    except OSError as problem:
        raise InvalidInput(f"{folder} cannot be written: {problem.strerror}; name another folder") from problem
    return [str(each.relative_to(folder)) for each in removed]


def _is_ours(file: Path) -> bool:
    return file.read_text(encoding="utf-8", errors="replace").startswith(HEADER)

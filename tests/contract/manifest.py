"""The requirement manifest: every `tests/contract/requirements/*.yaml` read into one mapping.

A file is a YAML mapping from a requirement's id to its sentence, or to `{text: ..., gap: ...}` when something is known
to be missing. This module reads and validates; it does not know which tests exist (`tools/requirements_check.py` does).
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

REQUIREMENTS = Path(__file__).parent / "requirements"
"""The manifest's folder: one file per area."""

_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
_FIELDS = frozenset({"text", "gap"})


class ManifestError(Exception):
    """A manifest file breaks the format; the message names the file, the id and what to do."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence that at least one test must prove."""

    id: str
    text: str
    source: Path
    gap: str | None = None
    """What is known to be missing; a requirement with a gap may stand without a test, and is always listed."""


class _UniqueKeyLoader(yaml.CSafeLoader):
    """YAML allows a repeated key and keeps the last one; a manifest must not lose a requirement that way."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise ManifestError(f"{node.start_mark.name}: a key stands twice in the same mapping; rename or merge it")
        return mapping


def load(folder: Path = REQUIREMENTS) -> dict[str, Requirement]:
    """Every requirement of the folder's `*.yaml` files, by id.

    Raises:
        ManifestError: A file is not a mapping, an entry is malformed, or an id stands twice.
    """
    requirements: dict[str, Requirement] = {}
    for path in sorted(folder.glob("*.yaml")):
        for requirement in _read(path):
            earlier = requirements.setdefault(requirement.id, requirement)
            if earlier is not requirement:
                raise ManifestError(
                    f"{path.name}: {requirement.id!r} already stands in {earlier.source.name}; rename one"
                )
    return requirements


def _read(path: Path) -> list[Requirement]:
    with path.open(encoding="utf-8") as stream:
        content: object = yaml.load(stream, Loader=_UniqueKeyLoader)
    if content is None:
        return []
    if not isinstance(content, dict):
        raise ManifestError(f"{path.name}: expected a mapping from ids to sentences, found {type(content).__name__}")
    return [_requirement(path, key, value) for key, value in cast("dict[object, object]", content).items()]


def _requirement(path: Path, key: object, value: object) -> Requirement:
    if not isinstance(key, str) or not _ID.fullmatch(key):
        raise ManifestError(f"{path.name}: {key!r} is no id; write it like 'area.what_is_required'")
    fields = cast("dict[object, object]", value) if isinstance(value, dict) else {"text": value}
    if unknown := sorted(str(name) for name in fields.keys() - _FIELDS):
        raise ManifestError(f"{path.name}: {key}: unknown field {', '.join(unknown)}; only text and gap are known")
    text, gap = fields.get("text"), fields.get("gap")
    if not isinstance(text, str) or not text.strip():
        raise ManifestError(f"{path.name}: {key}: needs one sentence of text, found {text!r}")
    if gap is not None and (not isinstance(gap, str) or not gap.strip()):
        raise ManifestError(f"{path.name}: {key}: a gap says what is missing, found {gap!r}")
    return Requirement(id=key, text=text.strip(), source=path, gap=gap.strip() if gap else None)

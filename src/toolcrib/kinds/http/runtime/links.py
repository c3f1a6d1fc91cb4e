"""The `Link` header (RFC 8288): which address has a relation to this answer."""

import re
from typing import Final

_LINK: Final = re.compile(r"""<([^<>]*)>((?:\s*;\s*[^\s;,="']+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";,]*))?)*)""")
_PARAMETER: Final = re.compile(r""";\s*([^\s;,="']+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*)))?""")
_MAX_HEADER: Final = 20_000


def linked(header: str, relation: str) -> str | None:
    """The first target with a relation, as it is written there; null if there is none.

    Args:
        header: All `Link` fields of an answer, joined with commas.
        relation: Such as `next`; upper and lower case are the same.
    """
    for target, parameters in _LINK.findall(header[:_MAX_HEADER]):
        # The first `rel` counts (RFC 8288, section 3.3), and it may name several relations.
        found = next(
            (quoted or plain for name, quoted, plain in _PARAMETER.findall(parameters) if name.lower() == "rel"), ""
        )
        if relation in found.lower().split():
            return target
    return None

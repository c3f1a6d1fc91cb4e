"""Writes the tables of fields in `docs/queries.md` from the one table that queries are read by.

python -m tools.docs.query_fields            # writes the page
python -m tools.docs.query_fields --check    # fails if it is not as it would be written
"""

import sys
from pathlib import Path
from typing import Final

from toolcrib.crib.tools.resources import RESOURCES

PAGE: Final = Path("docs/queries.md")
HEADING: Final = "## Fields"


def tables() -> str:
    """The section of the page that has the fields; resources with the same fields share a table."""
    groups: dict[int, list[str]] = {}
    for name, resource in RESOURCES.items():
        groups.setdefault(id(resource.fields), []).append(name)
    lines = [HEADING, ""]
    for names in groups.values():
        resource = RESOURCES[names[0]]  # pyright: ignore[reportArgumentType] - it is a key of the table
        order = ", ".join(f"`{key.field}{' desc' if key.descending else ''}`" for key in resource.order)
        lines += [f"### {', '.join(f'`{name}`' for name in names)}", "", f"In the order of {order}.", ""]
        lines += ["| field | type | says |", "|---|---|---|"]
        for name, field in resource.fields.items():
            choices = f" One of {', '.join(f'`{choice}`' for choice in field.choices)}." if field.choices else ""
            lines.append(f"| `{name}` | {field.type} | {field.text}{choices} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def page(text: str) -> str:
    """The page with the tables of today."""
    return text[: text.index(HEADING)] + tables()


def main() -> int:
    """Write the page, or compare it."""
    text = PAGE.read_text(encoding="utf-8")
    made = page(text)
    if "--check" in sys.argv:
        if made != text:
            print(f"{PAGE} is not of today's fields: run python -m tools.docs.query_fields")
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Descriptions of tools for other systems: their names, texts, schemas and shapes. Nothing runs here.

It imports contracts and llm. The crib and the interfaces import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.export.descriptions import check_description, describe, generate_description
    from toolcrib.core.export.dialects import DIALECTS, SchemaDialect, lint_schema
    from toolcrib.core.export.forms import (
        FORMATS,
        ExportFormat,
        export_tools,
        lost_in_export,
        mcp_tool,
        select_available,
    )
    from toolcrib.core.export.names import export_names
    from toolcrib.core.export.portable import PortableSchema, drop_nulls, translate_schema
    from toolcrib.core.export.skills import skills_by_category, write_skills
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.export.descriptions": "check_description describe generate_description",
            "toolcrib.core.export.dialects": "DIALECTS SchemaDialect lint_schema",
            "toolcrib.core.export.forms": (
                "FORMATS ExportFormat export_tools lost_in_export mcp_tool select_available"
            ),
            "toolcrib.core.export.names": "export_names",
            "toolcrib.core.export.portable": "PortableSchema drop_nulls translate_schema",
            "toolcrib.core.export.skills": "skills_by_category write_skills",
        },
    )

__all__ = [
    "DIALECTS",
    "FORMATS",
    "ExportFormat",
    "PortableSchema",
    "SchemaDialect",
    "check_description",
    "describe",
    "drop_nulls",
    "export_names",
    "export_tools",
    "generate_description",
    "lint_schema",
    "lost_in_export",
    "mcp_tool",
    "select_available",
    "skills_by_category",
    "translate_schema",
    "write_skills",
]

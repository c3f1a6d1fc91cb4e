"""The expression language of `{{ }}` in prompts and `${ }` in references, and JSONPath for mappings.

A text is parsed once with `Template.parse`, `check`ed against the names it may use, and rendered with a scope of JSON
values; a structure is `resolve`d, or compiled once and resolved often. The language has no loops and no access to the
host: no Python attributes, methods or imports. Every evaluation has limits. The only exception is `InvalidExpression`.
All packages above `core.expressions` may import it; it imports contracts only.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.expressions.expression import Expression, compile_expression
    from toolcrib.core.expressions.rewriting import literal, rename_reference, rename_references
    from toolcrib.core.expressions.template import Structure, Style, Template, compile_structure, references_of, resolve
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.expressions.expression": "Expression compile_expression",
            "toolcrib.core.expressions.rewriting": "literal rename_reference rename_references",
            "toolcrib.core.expressions.template": "Structure Style Template compile_structure references_of resolve",
        },
    )

__all__ = [
    "Expression",
    "Structure",
    "Style",
    "Template",
    "compile_expression",
    "compile_structure",
    "literal",
    "references_of",
    "rename_reference",
    "rename_references",
    "resolve",
]

"""The loop-free language behind `{{ }}` in prompts and `${ }` in references, and JSONPath for mappings.

A text is `Template.parse`d once, `check`ed against the names it may use, and rendered with a scope of JSON values; a
structure is `resolve`d, or compiled once and resolved often. Every cost is bounded by the source and an absolute limit.
There is no way to call the host: no attributes, no methods of Python objects, no imports. Everything here raises
`InvalidExpression` and nothing else.
"""

from toolcrib.core.expressions.expression import Expression, compile_expression
from toolcrib.core.expressions.rewriting import literal, rename_reference, rename_references
from toolcrib.core.expressions.template import Structure, Style, Template, compile_structure, references_of, resolve

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

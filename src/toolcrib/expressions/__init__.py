"""The loop-free language behind `{{ }}` in prompts and `${ }` in references, and JSONPath for mappings.

A text is `Template.parse`d once, `check`ed against the names it may use, and rendered with a scope of JSON values; a
structure is `resolve`d. Every cost is bounded by the source and an absolute limit. There is no way to call the host: no
attributes, no methods of Python objects, no imports. Everything here raises `InvalidExpression` and nothing else.
"""

from toolcrib.expressions.expression import Expression, compile_expression
from toolcrib.expressions.structure import references_of, resolve
from toolcrib.expressions.template import Style, Template

__all__ = [
    "Expression",
    "Style",
    "Template",
    "compile_expression",
    "references_of",
    "resolve",
]

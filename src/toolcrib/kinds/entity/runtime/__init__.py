"""Runs tools over the rows of a database: `runtime` is the way in, and loads the rest when it is first called.

`operations` does what a call asks for, with `rows` for the table, `filters` and `orders` for what the caller writes,
and `values` between JSON and the database.
"""

from toolcrib.kinds.entity.runtime.runtime import EntityRuntime

__all__ = ["EntityRuntime"]

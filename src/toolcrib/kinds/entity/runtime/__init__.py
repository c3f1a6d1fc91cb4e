"""Executes tools on the rows of a database.

`runtime` is the entry point and loads the other modules at the first call. `operations` performs a call: `rows`
accesses the table, `filters` parses filters and orders, `values` converts between JSON and the database. Imported by
`kinds.entity`; opening databases is in `kinds.entity.importer`.
"""

from toolcrib.kinds.entity.runtime.runtime import EntityRuntime

__all__ = ["EntityRuntime"]

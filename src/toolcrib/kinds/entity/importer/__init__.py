"""Databases as providers, and their tables as tools.

`entity` is the decorator for mapped classes. `generation` makes tools of entities, which are mapped classes or tables
(`tables`) or are read from a database (`reflection`); `databases` and `engines` reach it. Only the names below load
without SQLAlchemy; the modules that need it are imported where they are used.
"""

from toolcrib.kinds.entity.importer.databases import Databases
from toolcrib.kinds.entity.importer.options import EntityOptions, entity, operation_name, options_of

__all__ = ["Databases", "EntityOptions", "entity", "operation_name", "options_of"]

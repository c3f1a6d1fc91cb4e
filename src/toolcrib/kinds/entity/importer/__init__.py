"""Creates providers from databases, and tools from their tables.

`options` has the decorator `entity` for mapped classes. `tables` and `reflection` read mapped classes, tables and
databases as entities, `generation` makes tools of them; `databases` and `engines` open connections. Importing this
package loads no SQLAlchemy; the modules that need it are imported when they are used. Imported within
`kinds.entity`, by `crib`, and by `toolcrib` for the decorator.
"""

from toolcrib.kinds.entity.importer.databases import Databases
from toolcrib.kinds.entity.importer.options import EntityOptions, entity, operation_name, options_of

__all__ = ["Databases", "EntityOptions", "entity", "operation_name", "options_of"]

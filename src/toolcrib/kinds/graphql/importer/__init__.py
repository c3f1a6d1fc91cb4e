"""Creates providers and tools from GraphQL schemas: reads a schema, chooses selections, makes definitions.

Imported by `kinds.graphql.commands`; executing operations is in `kinds.graphql.runtime`.
"""

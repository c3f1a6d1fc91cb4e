"""GraphQL schemas become providers and tools: reading a schema, choosing what is selected, making definitions."""

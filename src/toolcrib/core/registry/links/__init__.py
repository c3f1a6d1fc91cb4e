"""What refers to a tool: bindings, locks, impact and notices."""

"""References between definitions: bindings, locks, impact and notices."""

"""What a new definition changes, and what becomes of the tools of an import."""

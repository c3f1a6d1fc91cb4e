"""Commands over projects: `apply` and `export`."""

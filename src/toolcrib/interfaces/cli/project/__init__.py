"""Commands over projects: `apply`, `export` and `init`."""

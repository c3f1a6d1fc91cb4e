"""Catalogues of definitions by name and version: find, search, list."""

"""Schemas of every OpenAPI version as JSON Schema 2020-12."""

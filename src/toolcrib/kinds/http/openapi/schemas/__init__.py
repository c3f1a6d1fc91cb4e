"""Converts schemas of every OpenAPI version to JSON Schema 2020-12.

Imported by `kinds.http.openapi`.
"""

"""Reads a document within limits: its text, references, fields and positions.

Imported by `kinds.http.openapi`.
"""

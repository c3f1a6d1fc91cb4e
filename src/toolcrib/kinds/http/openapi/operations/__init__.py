"""The operations of an OpenAPI document of any version: their parts, security and servers.

Imported by `kinds.http.openapi`.
"""

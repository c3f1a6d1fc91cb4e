"""Connections to other systems: their authentication, their reference lists, and importers that make tools of them.

Pure functions over contracts: nothing here opens a connection or stores a definition.
"""

from toolcrib.providers.openapi import ImportedApi, Loss, ToolOverride, import_openapi

__all__ = ["ImportedApi", "Loss", "ToolOverride", "import_openapi"]

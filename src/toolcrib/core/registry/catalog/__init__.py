"""Definitions by name and version: found, searched and listed."""

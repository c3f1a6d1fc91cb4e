"""Candidates that run in the project's own environment, so that they share one aiohttp and one orjson."""

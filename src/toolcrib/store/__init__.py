"""Definitions, journal, cache, blobs: what must survive the process."""

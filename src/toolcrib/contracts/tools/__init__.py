"""Definitions of tools and agents as people write them, and how they change."""

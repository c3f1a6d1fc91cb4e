"""Workflows as people change them: authoring, published status, impact, and steps made of calls."""

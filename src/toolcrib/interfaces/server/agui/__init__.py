"""Agents for web interfaces that speak AG-UI (docs.ag-ui.com): requests as runs, and their streams as its events.

It is loaded with the first request.
"""

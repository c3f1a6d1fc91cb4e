"""The bodies of REST requests and responses that are not plain contracts.

Imported by the routes of `interfaces.server`.
"""

"""Providers: addresses, authentication, connections, and what is kept by name."""

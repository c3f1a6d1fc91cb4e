"""Authentication of calls to a provider: credentials, OAuth, tokens and people's connections."""

"""How calls authenticate to a provider: credentials, OAuth, tokens and people's connections."""

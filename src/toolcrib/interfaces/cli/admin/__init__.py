"""Commands for operators: providers, keys, settings, stores, servers and workers."""

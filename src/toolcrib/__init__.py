"""Toolcrib: governed, observable, durable tools for AI agents."""

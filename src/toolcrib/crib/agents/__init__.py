"""Agents of a crib: saved, asked, evaluated; their conversations and questions."""

"""The demonstrations, and what they print."""

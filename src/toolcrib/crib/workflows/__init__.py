"""Workflows of a crib: checked, drafted, published, run."""

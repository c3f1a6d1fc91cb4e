"""Stores as an older release left them, with the runs of all kinds in them, and what must become of these runs."""

"""Is a definition well formed? Checked when it is saved."""

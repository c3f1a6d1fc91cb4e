"""Model requests of a run: guarded, recorded, streamed."""

"""One model call of a run: guarded, recorded, streamed."""

"""The journal of a run: written, read back, and put into bundles."""

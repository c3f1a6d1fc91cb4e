"""The journal of a run: written, read, and exported in bundles."""

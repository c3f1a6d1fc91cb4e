"""Reference lists in runs: read, kept as snapshots, and searched by label."""

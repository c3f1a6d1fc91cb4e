"""Reference lists in runs: read, kept as snapshots, and looked up by the labels that people use."""

"""The SQL store, one module per subject."""

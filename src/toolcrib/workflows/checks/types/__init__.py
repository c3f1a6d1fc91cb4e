"""Types of values before a run: shapes, outputs and expressions."""

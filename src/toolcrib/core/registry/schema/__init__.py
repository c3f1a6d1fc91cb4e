"""JSON Schema: validation of values, and the comparison of one schema with another."""

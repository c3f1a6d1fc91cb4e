"""JSON Schema: validation of values, and comparison of schemas."""

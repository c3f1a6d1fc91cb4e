"""The graph of a definition during checks: layout and cycles."""

"""The graph of a definition as it is checked: layout and cycles."""

"""What a tool is made of: one model per kind, and their union."""

"""Changes of definitions: their classification, and the adoption of imported tools."""

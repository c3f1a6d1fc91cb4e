"""Reading a document under bounds: text, references, fields and positions."""

"""Commands for tools: listed, called, imported, authored, deprecated."""

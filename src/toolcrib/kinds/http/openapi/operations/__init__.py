"""The operations of a document, whatever its version: parts, security and servers."""

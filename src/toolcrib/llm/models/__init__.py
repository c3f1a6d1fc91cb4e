"""Opens models by name, asks them, and scripts them for tests.

It imports `llm.base`, `llm.wires`, `llm.text`, `llm.sdk` and `llm.local`.
"""

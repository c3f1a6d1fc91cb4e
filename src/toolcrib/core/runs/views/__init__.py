"""Views of a journal: trace, result, outputs, stream messages and comparisons."""

"""What was said before a run: the turns of its conversation, read from their journals, and how many are shown."""

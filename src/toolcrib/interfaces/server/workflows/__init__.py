"""Routes of workflows, their drafts and instances."""

"""Commands for workflows and their runs."""

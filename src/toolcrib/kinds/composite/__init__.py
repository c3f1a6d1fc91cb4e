"""Tools of kind `composite`: rules choose one of many operations."""

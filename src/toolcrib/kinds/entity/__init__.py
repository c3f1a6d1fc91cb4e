"""Tools of kind `entity`: operations on the rows of a table."""

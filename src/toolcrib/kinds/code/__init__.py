"""Tools of kind `code`: programs in a sandbox."""

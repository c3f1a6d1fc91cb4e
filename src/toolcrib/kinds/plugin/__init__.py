"""Tools of kind `plugin`: executed by other packages."""

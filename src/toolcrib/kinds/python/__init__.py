"""Tools of kind `python`: functions of the application."""

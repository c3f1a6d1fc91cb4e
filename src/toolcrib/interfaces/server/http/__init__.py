"""What every request passes: keys, middleware, parsing, errors and streams."""

"""Real servers for tests: one module each, with a context manager that starts one and stops it in the end."""

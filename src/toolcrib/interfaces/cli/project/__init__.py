"""Commands over projects: `apply`."""

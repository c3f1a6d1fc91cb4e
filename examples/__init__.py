"""Real systems that the demonstrations and tests run against, and the demonstrations themselves."""

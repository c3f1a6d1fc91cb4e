"""Real systems that the demonstrations and tests run against; none of them imports toolcrib."""

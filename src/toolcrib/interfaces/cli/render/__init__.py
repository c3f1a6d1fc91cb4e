"""Output for terminals: tables, trees, graphs and comparisons."""

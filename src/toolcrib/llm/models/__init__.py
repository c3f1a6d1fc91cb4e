"""Models: found by name, opened, asked, scripted for tests."""

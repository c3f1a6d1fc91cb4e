"""Routes of agents, their executions and conversations."""

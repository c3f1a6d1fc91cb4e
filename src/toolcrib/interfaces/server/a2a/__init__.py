"""Agents for other agents, by the A2A protocol: tasks are runs, and contexts are conversations."""

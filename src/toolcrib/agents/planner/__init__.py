"""The stages of deterministic agentic tools: plan, steps, review and answer, and their questions to people."""

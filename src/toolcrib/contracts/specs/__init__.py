"""What definitions are made of: models, guardrails, agents and workflow steps."""

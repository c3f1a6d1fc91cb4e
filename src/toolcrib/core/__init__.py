"""How a tool of any kind is registered, checked, called and recorded.

It imports contracts, infrastructure and llm. Agents, workflows, the kinds of tools, the crib and the interfaces import
it.
"""

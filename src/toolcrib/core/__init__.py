"""How a tool is known, judged, called and recorded, whatever it is made of.

It imports contracts, infrastructure and llm. Agents, workflows and the kinds of tools are built on it.
"""

"""A tool that is neither a name, a function nor a definition."""

from toolcrib import Crib

crib = Crib("memory://")
crib.agent("desk", model="scripted:desk", tools=[4])  # mypy: AllocatedTool | pyright: AllocatedTool

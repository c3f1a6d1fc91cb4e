"""The crib: the composition root that wires the house together, and the Python API."""

from toolcrib.crib.crib import Crib
from toolcrib.crib.handle import Agent, AgenticTool, CompositeTool

__all__ = ["Agent", "AgenticTool", "CompositeTool", "Crib"]

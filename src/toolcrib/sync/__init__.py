"""The synchronous crib, for scripts, notebooks and threads: every method waits for its result.

Example:
    from toolcrib.sync import Crib

    with Crib("memory://") as crib:
        crib.add(search_deals)
        print(crib.call("search_deals", company="Acme").output)
"""

from toolcrib.sync.acting import ActingCrib
from toolcrib.sync.crib import Crib
from toolcrib.sync.handles import Agent, AgenticTool, CompositeTool, WorkflowHandle

__all__ = ["ActingCrib", "Agent", "AgenticTool", "CompositeTool", "Crib", "WorkflowHandle"]

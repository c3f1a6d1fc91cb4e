"""External resources of a process: the network, the store, Redis, secrets and sandboxes.

It imports contracts only; llm, core and every package above them may import it.
"""

"""What a process uses outside itself: the network, a store, Redis, secrets and sandboxes.

It imports contracts only.
"""

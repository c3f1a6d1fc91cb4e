"""Benchmarks: Toolcrib beside a hand-written loop and beside its peers, in one interleaved run.

Run them as modules from the repository's root, e.g. `python -m benchmarks.agent_loop`. They need the development
environment and a network for the first run only, when the peers are installed. Not part of the package.
"""

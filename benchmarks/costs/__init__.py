"""Deterministic costs of fixed work, and the gate that keeps them: `python -m benchmarks.costs`, docs/benchmarks.md.

`counting` makes one process deterministic and counts, `network` is the network of that process, `works` is what is
counted, `gate` holds the counts against the committed ones in `costs.json`, and `where` tells which code they are in.
"""

"""The basis of all contracts: the base model, errors, identities, principals, envelopes and implementations.

Any package may import it; most names are in `toolcrib.contracts` too.
"""

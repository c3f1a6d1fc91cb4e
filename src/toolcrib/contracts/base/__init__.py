"""The basis of all contracts: the base model, errors, identities, principals, envelopes and implementations.

Imported by the other modules of `contracts`; other packages import from `toolcrib.contracts`.
"""

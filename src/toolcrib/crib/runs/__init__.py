"""Runs of a crib: approvals, settlements, forks, bundles, retention and rehearsals.

Imported by `crib.crib`, `crib.container` and `interfaces`. The journal and its readings are in `toolcrib.core.runs`.
"""

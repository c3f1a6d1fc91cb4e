"""Runs of a crib: approvals, settlements, forks, bundles, retention and rehearsals.

Imported within `crib`, and by `interfaces`. The journal and its readings are in `toolcrib.core.runs`.
"""

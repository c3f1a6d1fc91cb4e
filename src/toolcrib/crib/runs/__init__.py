"""Runs of a crib: approvals, settlements, forks, bundles, retention and rehearsals."""

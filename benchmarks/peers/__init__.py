"""Peers: other agent frameworks, each in an environment of its own made from `NAME.txt`.

Every one is driven as its own documentation shows, with default settings and with tracing off. Their packages are not
in the project's environment, so this folder is outside the type checker's scope.
"""

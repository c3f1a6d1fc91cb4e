"""The interfaces to a crib besides Python: REST (`server`) and the command line (`cli`).

Both only translate to and from the crib's Python API; they have no rules of their own for runs. No package imports
them.
"""

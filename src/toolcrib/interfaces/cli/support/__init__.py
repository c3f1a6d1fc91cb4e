"""What commands share: a crib for one command, options, inputs and results.

Imported by the commands of `interfaces.cli`.
"""

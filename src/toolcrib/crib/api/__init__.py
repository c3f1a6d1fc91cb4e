"""The Python API besides `Crib` itself: the crib of one principal, definitions with their handles."""

"""The parts of a crib, made once and wired together, and what all of them need: catalogue, access, requests."""

"""Tasks in plain words, carried out by a real model on real systems, and judged by what these systems then hold."""

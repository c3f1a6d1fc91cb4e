"""The turns of a run in which a model decides: it is asked, its calls are checked and made, it sees the results."""

"""An option of a workflow that does not exist."""

from toolcrib import Crib

crib = Crib("memory://")
crib.workflow("restock", steps=[], descripton="Restocks.")  # mypy: did you mean "description" | pyright: No overloads

"""An option of an agent that does not exist."""

from toolcrib import Crib

crib = Crib("memory://")
crib.agent("desk", system_promt="Help.")  # mypy: did you mean "system_prompt" | pyright: No overloads

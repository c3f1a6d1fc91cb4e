"""A field of a definition that does not exist."""

from toolcrib import Limits

Limits(max_turns=3)  # mypy: max_turns | pyright: max_turns

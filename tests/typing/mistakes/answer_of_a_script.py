"""An answer that no model gives."""

from toolcrib import ScriptedModel

ScriptedModel([4])  # mypy: ModelError | pyright: ScriptedAnswer

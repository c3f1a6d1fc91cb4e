"""Testing tools, agents and workflows: scripted models, a frozen clock, assertions, approvals, time and crashes.

Nothing here needs pytest; `toolcrib.testing.pytest_plugin` has fixtures for it. Names load when they are first used.
See docs/testing.md.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.llm import ScriptedModel
    from toolcrib.testing.answers import ScriptModels, calls, fails, says, says_json, together
    from toolcrib.testing.call_assertions import assert_called, assert_not_called, calls_of
    from toolcrib.testing.crashes import crash, restart
    from toolcrib.testing.cribs import advance, approve, new_crib, reject, send_signal
    from toolcrib.testing.every_tool import CallsEachTool
    from toolcrib.testing.example_values import example_value
    from toolcrib.testing.frozen_clock import FrozenClock
    from toolcrib.testing.model_overrides import ModelExchange, capture_messages, override_models
    from toolcrib.testing.recordings import RecordMode, record_models
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.llm": "ScriptedModel",
            "toolcrib.testing.answers": "ScriptModels calls fails says says_json together",
            "toolcrib.testing.call_assertions": "assert_called assert_not_called calls_of",
            "toolcrib.testing.crashes": "crash restart",
            "toolcrib.testing.cribs": "advance approve new_crib reject send_signal",
            "toolcrib.testing.every_tool": "CallsEachTool",
            "toolcrib.testing.example_values": "example_value",
            "toolcrib.testing.frozen_clock": "FrozenClock",
            "toolcrib.testing.model_overrides": "ModelExchange capture_messages override_models",
            "toolcrib.testing.recordings": "RecordMode record_models",
        },
    )

__all__ = [
    "CallsEachTool",
    "FrozenClock",
    "ModelExchange",
    "RecordMode",
    "ScriptModels",
    "ScriptedModel",
    "advance",
    "approve",
    "assert_called",
    "assert_not_called",
    "calls",
    "calls_of",
    "capture_messages",
    "crash",
    "example_value",
    "fails",
    "new_crib",
    "override_models",
    "record_models",
    "reject",
    "restart",
    "says",
    "says_json",
    "send_signal",
    "together",
]

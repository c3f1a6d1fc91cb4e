"""Models that run in this process: the catalogue, the installation and the transport.

Nothing here loads the inference library before the first request. `llm.models` and the command line import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.llm.local.in_process import CONTEXT_TOKENS, LONGEST_ANSWER, LocalTransport
    from toolcrib.llm.local.installable import (
        MODELS,
        MODELS_FOLDER,
        LocalModel,
        find_model,
        list_installed,
        model_path,
        models_folder,
        remove,
    )
    from toolcrib.llm.local.installation import Progress, install
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.llm.local.in_process": "CONTEXT_TOKENS LONGEST_ANSWER LocalTransport",
            "toolcrib.llm.local.installation": "Progress install",
            "toolcrib.llm.local.installable": (
                "LocalModel MODELS MODELS_FOLDER find_model list_installed model_path models_folder remove"
            ),
        },
    )

__all__ = [
    "CONTEXT_TOKENS",
    "LONGEST_ANSWER",
    "MODELS",
    "MODELS_FOLDER",
    "LocalModel",
    "LocalTransport",
    "Progress",
    "find_model",
    "install",
    "list_installed",
    "model_path",
    "models_folder",
    "remove",
]

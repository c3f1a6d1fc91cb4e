"""Models that run in this process: the catalogue, the installation and the transport.

Nothing here loads the inference library before the first request. `llm.models` and the command line import it.
"""

from toolcrib.llm.local.in_process import LocalTransport
from toolcrib.llm.local.install import Progress, install
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

__all__ = [
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

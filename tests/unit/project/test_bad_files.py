"""Files that nobody can apply: each is one error with file, line and the next step, and nothing is written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib.crib.project import InvalidProject, Project

pytestmark = pytest.mark.requirement("projects.read")

TONE = "kind: fragment\nname: tone\ntext: Be brief.\n"
BOMB = "kind: fragment\nname: tone\na: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def text(content: str | bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(content if isinstance(content, bytes) else content.encode())


def link(target: str) -> Callable[[Path], object]:
    return lambda file: file.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(text(f"{TONE}tags:\n\t- a\n"), "bad.yaml:5: it is not YAML: found character '\\t'", id="tab"),
        pytest.param(text(BOMB), "with its aliases it has more than 500,000 values; use fewer", id="anchors"),
        pytest.param(text(f"{TONE}a: &a [*a]\n"), "bad.yaml:4: it is not YAML: an anchor contains", id="endless"),
        pytest.param(text(f"{TONE}text: B.\n"), "bad.yaml:4: 'text' stands twice in one mapping", id="twice"),
        pytest.param(text(TONE + "# " * 5_000_000), "the file has 10,000,042 bytes, and at most 2,000,000", id="large"),
        pytest.param(text(f"{TONE}a: ".encode() + b"\xff"), "bad.yaml:4: byte 0xff is not UTF-8; save it", id="bytes"),
        pytest.param(text(f"{TONE}a: {'[' * 5000}"), "nested too deeply; take levels out", id="deep"),
        pytest.param(text(f"{TONE}1: one\n"), "bad.yaml:4: fragment 'tone':", id="number"),
        pytest.param(text(f"{TONE}a: !!python/name:os.system\n"), "bad.yaml:4: it is not YAML: could not", id="tag"),
        pytest.param(
            text("kind: fragment\nname: tone\ntext: !!binary eA==\n"),
            "bad.yaml:3: it is not YAML: could not",
            id="binary",
        ),
        pytest.param(text("kind: [a]\nname: tone\n"), "bad.yaml:1: there is no kind ['a']", id="kind"),
        pytest.param(text("kind: fragment\nname: 5\ntext: x\n"), "bad.yaml:2: fragment 5: name is 5", id="name"),
        pytest.param(link("bad.yaml"), "bad.yaml:1: it cannot be read: Too many levels of symbolic links", id="loop"),
        pytest.param(link("gone.yaml"), "bad.yaml:1: it cannot be read: No such file", id="nowhere"),
        pytest.param(
            link("/proc/self/mem"), "bad.yaml:1: it cannot be read: Input/output error; mend", id="unreadable"
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_error(make: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "good.yaml").write_text("kind: fragment\nname: good\ntext: x\n")
    make(folder / "bad.yaml")
    with pytest.raises(InvalidProject) as refused:
        Project.read(folder)
    assert len(refused.value.faults) == 1
    assert said in str(refused.value)

    store = tmp_path / "crib.db"
    shown = toolcrib("apply", folder, "--yes", store=f"sqlite:///{store}")
    assert (shown.exit_code, store.exists()) == (2, False)
    assert "Traceback" not in shown.stderr


def test_a_folder_that_links_to_itself_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "tone.yaml").write_text(TONE)
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "again.yaml").symlink_to(tmp_path)
    assert [each.name for each in Project.read(tmp_path).documents] == ["tone"]


def test_aliases_and_merges_are_as_in_yaml(tmp_path: Path) -> None:
    shared = "kind: fragment\nname: a\ntext: &text Be brief.\n---\n<<: &all {kind: fragment, text: Be kind.}\nname: b\n"
    (tmp_path / "tone.yaml").write_text(shared)
    found = {each.name: each.content["text"] for each in Project.read(tmp_path).documents}
    assert found == {"a": "Be brief.", "b": "Be kind."}

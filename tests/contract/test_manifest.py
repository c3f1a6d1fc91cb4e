"""The manifest's own format, on small folders."""

from pathlib import Path

import pytest

from tests.contract import manifest

pytestmark = pytest.mark.requirement("repository.manifest_format")


def folder(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return path


def test_sentences_and_known_gaps_are_read_from_every_file(tmp_path: Path):
    folder(tmp_path, a="a.one: One.\n", b="b.two: {text: Two., gap: not on Windows}\n", empty="")

    requirements = manifest.load(tmp_path)

    assert [(r.id, r.text, r.gap, r.source.name) for r in requirements.values()] == [
        ("a.one", "One.", None, "a.yaml"),
        ("b.two", "Two.", "not on Windows", "b.yaml"),
    ]


def test_the_repository_s_own_manifest_is_well_formed():
    assert "repository.manifest_format" in manifest.load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a.one\n", "expected a mapping from ids to sentences, found list"),
        ("one: One.\n", "'one' is no id"),
        ("1: One.\n", "1 is no id"),
        ("a.one: ''\n", "a.one: needs one sentence of text, found ''"),
        ("a.one: {gap: later}\n", "a.one: needs one sentence of text, found None"),
        ("a.one: {text: One., gap: ''}\n", "a.one: a gap says what is missing, found ''"),
        ("a.one: {text: One., owner: me}\n", "a.one: unknown field owner"),
        ("a.one: One.\na.one: Two.\n", "a key stands twice"),
    ],
)
def test_a_malformed_file_is_refused_with_a_message_that_says_what_to_do(tmp_path: Path, text: str, message: str):
    with pytest.raises(manifest.ManifestError, match=r"requirements\.yaml: ") as caught:
        manifest.load(folder(tmp_path, requirements=text))

    assert message in str(caught.value)


def test_an_id_may_stand_in_one_file_only(tmp_path: Path):
    folder(tmp_path, a="a.one: One.\n", b="a.one: Two.\n")

    with pytest.raises(manifest.ManifestError, match=r"b\.yaml: 'a\.one' already stands in a\.yaml"):
        manifest.load(tmp_path)

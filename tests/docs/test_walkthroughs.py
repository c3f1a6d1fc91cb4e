"""The tutorials are followed as a reader would follow them, in an empty folder and without a key."""

from pathlib import Path
from typing import Final

import pytest

from tests.docs.walkthrough import Reader, blocks
from tools.docs import pages

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = {path: text for path, text in pages.pages(ROOT).items() if path.startswith(("tutorials/", "getting"))}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Someone without keys and settings, in an empty folder."""
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TOOLCRIB_STORE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return Reader(tmp_path, monkeypatch)


@pytest.mark.requirement("docs.tutorials")
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_followed_from_its_beginning_to_its_end(path: str, reader: Reader) -> None:
    assert reader.follow(PAGES[path]) >= 2


@pytest.mark.requirement("docs.tutorials")
def test_there_is_a_tutorial_for_each_kind_of_user() -> None:
    assert {"tutorials/agent.md", "tutorials/governance.md", "tutorials/workflow.md"} < PAGES.keys()


@pytest.mark.requirement("docs.tutorials")
def test_what_a_page_says_and_a_command_does_not_print_is_found(reader: Reader) -> None:
    page = '```python title="a.py"\nprint("one two")\n```\n```sh\npython a.py\n```\n```text\none …\n```\n'
    assert reader.follow(page) == 1
    with pytest.raises(AssertionError, match="was not printed"):
        reader.follow(page + "```text\nthree\n```\n")
    with pytest.raises(AssertionError, match="exit status 3"):
        reader.follow('```python title="a.py"\nraise SystemExit(3)\n```\n```sh\npython a.py\n```\n')


@pytest.mark.requirement("docs.tutorials")
def test_blocks_are_read_with_their_titles() -> None:
    assert blocks('```python title="a.py"\n1\n```\n\n```sh\nls\n```\n') == [
        ("python", "a.py", "1\n"),
        ("sh", "", "ls\n"),
    ]

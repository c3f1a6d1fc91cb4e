"""The pages of the documentation: every page is in the navigation, and every link leads somewhere."""

from pathlib import Path
from typing import Final

import pytest

from tools.docs import pages

ROOT: Final = Path(__file__).parents[2]


@pytest.mark.requirement("docs.index")
def test_the_navigation_has_every_page_and_no_other() -> None:
    config = pages.config(ROOT)
    listed = list(pages.navigation(config["nav"]))
    written = set(pages.pages(ROOT))
    assert len(listed) == len(set(listed)), "a page stands twice in the navigation"
    assert written - set(listed) == set(), "add these pages to the navigation in mkdocs.yml"
    missing = set(listed) - written - set(config["extra"]["reserved"])
    assert {page for page in missing if not page.startswith(pages.GENERATED)} == set()


@pytest.mark.requirement("docs.index")
def test_every_link_of_the_readme_and_of_a_page_leads_somewhere() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert list(pages.broken_links(ROOT, readme)) == []
    for path, text in pages.pages(ROOT).items():
        folder = (ROOT / pages.DOCS / path).parent
        broken = [link for link in pages.broken_links(folder, text) if pages.GENERATED not in link]
        assert broken == [], path


@pytest.mark.requirement("docs.index")
def test_a_link_to_a_page_or_a_heading_that_is_missing_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A page\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    text = "[a](page.md#a-page) [b](page.md#twice_1) [c](page.md#none) [d](gone.md) [e](#here) `[f](no.md)`\n# Here\n"
    assert list(pages.broken_links(tmp_path, text)) == ["page.md#none", "gone.md"]


@pytest.mark.requirement("docs.index")
def test_a_page_that_is_missing_is_left_out_of_the_navigation_with_its_section() -> None:
    nav: pages.Nav = [{"A": "a.md"}, {"B": [{"C": "c.md"}]}, {"D": [{"E": "e.md"}, {"F": "f.md"}]}]
    assert pages.prune(nav, {"a.md", "f.md"}) == [{"A": "a.md"}, {"D": [{"F": "f.md"}]}]

"""Build the documentation site into `build/site`: `python -m tools.docs.site`, or `make docs`.

The pages of `docs` are copied to `build/docs`, the references are made from the code beside them, and Zensical builds
the site. A warning ends the build. Nothing in the site loads anything from another host: `foreign_loads` checks it.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

from tools.docs import pages, python_reference, reference

BUILD: Final = Path("build")
FILES: Final = "files"
"""Folder of the site for files of the repository that pages link to."""
_LOADING: Final = re.compile(
    r"""<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*?\b(?:src|href|data)=["']?((?:https?:)?//[^"'\s>]+)"""
)
_LOADING_STYLE: Final = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
_LOADED_BY_SCRIPT: Final = re.compile(r"https?://(?!www\.w3\.org)[\w.-]+\.[a-z]{2,}[^\"'`\s]*")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


def references(root: Path) -> Mapping[str, str]:
    """The pages that are made from code, by path."""
    made = {
        "python.md": python_reference.page(),
        "rest.md": reference.rest_page(),
        "contracts.md": reference.contract_page(root / pages.DOCS / "schemas"),
        "errors.md": reference.error_page(),
        "decisions.md": reference.decision_page(root / pages.DOCS / "decisions"),
    }
    return {f"{pages.GENERATED}/{name}": text for name, text in made.items()}


def prepare(root: Path, build: Path) -> Path:
    """Write all pages and the configuration of the site; returns the configuration's file."""
    source = build / "docs"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / pages.DOCS, source)
    for path, text in references(root).items():
        file = source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(with_files(text, page, source, root), encoding="utf-8")
    config = pages.config(root)
    known = {page.relative_to(source).as_posix() for page in source.rglob("*.md")}
    config |= {"nav": pages.prune(config["nav"], known), "docs_dir": "docs", "site_dir": "site"}
    written = build / "mkdocs.yml"
    written.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return written


def with_files(text: str, page: Path, source: Path, root: Path) -> str:
    """A page whose links to files of the repository outside of `docs` lead to copies in the site."""

    def replace(found: re.Match[str]) -> str:
        link = found[1]
        if re.match(r"[a-z]+:|#", link) or (page.parent / link.partition("#")[0]).exists():
            return found[0]
        original = (root / pages.DOCS / page.parent.relative_to(source) / link.partition("#")[0]).resolve()
        if not original.exists():
            return found[0]
        copied = _copy(original, source / FILES, root.resolve())
        up = "../" * len(page.parent.relative_to(source).parts)
        return f"]({up}{copied.relative_to(source).as_posix()})"

    return re.sub(r"\]\(([^)\s]+)\)", replace, text)


def _copy(original: Path, files: Path, root: Path) -> Path:
    """Copy a file into the site, or list the files of a folder; returns the copy or the list."""
    place = files / original.relative_to(root)
    if original.is_file():
        place = place.with_name(f"{place.name}.txt")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, place)
        return place
    lines = [f"# {original.relative_to(root).as_posix()}", ""]
    for file in sorted(each for each in original.rglob("*.*") if each.suffix in {".py", ".yaml", ".md"}):
        if "__pycache__" not in file.parts:
            copied = _copy(file, files, root)
            lines.append(f"- [{file.relative_to(original).as_posix()}]({copied.relative_to(place.parent).as_posix()})")
    listed = place.with_name(f"{place.name}-files.md")
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return listed


def cut_off(site: Path) -> None:
    """Replace the addresses from which the theme's script would load optional parts that this site does not use."""
    for script in site.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        kept = _LOADED_BY_SCRIPT.sub("about:blank", _COMMENT.sub("", text))
        if kept != text:
            script.write_text(kept, encoding="utf-8")


def foreign_loads(site: Path) -> Iterator[str]:
    """What a reader's browser would load from another host: `page: address`. Links that a reader follows are not."""
    for file in sorted(site.rglob("*")):
        if file.suffix in {".html", ".css", ".svg"}:
            text = file.read_text(encoding="utf-8")
            found = [*_LOADING.findall(text), *_LOADING_STYLE.findall(re.sub(r"<pre\b.*?</pre>", "", text, flags=re.S))]
        elif file.suffix == ".js":
            found = _LOADED_BY_SCRIPT.findall(file.read_text(encoding="utf-8"))
        else:
            found = []
        yield from (f"{file.relative_to(site)}: {address}" for address in found)


def build(root: Path, folder: Path) -> Path:
    """Build the site below a folder; returns the site.

    Raises:
        RuntimeError: A warning of the build, or something that would be loaded from another host.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = prepare(root, folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(config)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode or "No issues found" not in done.stdout + done.stderr:
        told = _COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0]
        raise RuntimeError(f"the site was not built:\n{told}")
    site = folder / "site"
    cut_off(site)
    if loaded := list(foreign_loads(site)):
        raise RuntimeError("the site loads from other hosts:\n" + "\n".join(loaded[:20]))
    return site


def main() -> int:
    """Returns 0, or 1 after the reason why there is no site."""
    try:
        site = build(Path.cwd(), Path.cwd() / BUILD)
    except RuntimeError as problem:
        print(problem)
        return 1
    count = len(list(site.rglob("*.html")))
    print(
        f"docs: {count} pages in {site.relative_to(Path.cwd())}; read them with: python3 -m http.server -d build/site"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

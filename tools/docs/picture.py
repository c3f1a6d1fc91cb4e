"""Draw the picture of the README: `python -m tools.docs.picture` runs the CRM demo and writes `docs/images/trace.svg`.

The picture is the trace that the command line prints, without the lines named in `LEFT_OUT`. It uses fonts of the
reader's machine, so that it loads nothing from another host.
"""

import asyncio
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console, Group
from rich.terminal_theme import MONOKAI
from rich.text import Text
from rich.tree import Tree

from examples.crm.demo import TASK, demonstrate
from toolcrib.contracts import Trace
from toolcrib.interfaces.cli.render.tree import draw

PICTURE: Final = Path("docs/images/trace.svg")
WIDTH: Final = 96
LEFT_OUT: Final = {"Cost", "Data", "Decision", "Duration", "Input", "Parameters", "Snapshot", "Tokens"}
"""Labels of lines below a step that the picture does not show."""
LEFT_OUT_STEPS: Final = ("Progress: plan_settled", "Reference Data")
LEFT_OUT_PARTS: Final = ("Run: ", "Duration: ")
"""Lines of the head that differ from run to run."""
TITLE: Final = "toolcrib demo crm"
_FORMAT: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {width} {height}" role="img">
<title>The trace of a run</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


async def run() -> Trace:
    """The trace of the demonstration."""
    with tempfile.TemporaryDirectory() as folder:
        return (await demonstrate(TASK, folder=Path(folder))).trace


def shorten(tree: Tree) -> None:
    """Take the lines out that the picture does not show."""
    tree.children = [branch for branch in tree.children if not str(branch.label).endswith(LEFT_OUT_STEPS)]
    for branch in tree.children:
        branch.children = [line for line in branch.children if str(line.label).partition(":")[0] not in LEFT_OUT]


def console_with(trace: Trace) -> Console:
    """A console that has recorded the shortened trace."""
    drawn = draw(trace)
    if not isinstance(drawn, Group):
        raise TypeError(f"the trace was drawn as {type(drawn).__name__}, and a group was expected")
    console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, highlight=False)
    for part in drawn.renderables:
        if isinstance(part, Tree):
            shorten(part)
        if not (isinstance(part, Text) and part.plain.startswith(LEFT_OUT_PARTS)):
            console.print(part)
    return console


def svg_of(trace: Trace) -> str:
    """The picture."""
    drawn = console_with(trace).export_svg(title=TITLE, theme=MONOKAI, code_format=_FORMAT, unique_id="trace")
    return re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE)


def main() -> int:
    """Write the picture."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(svg_of(asyncio.run(run())), encoding="utf-8")
    print(f"wrote {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a workflow looks like on a terminal, and where something stands in its file."""

from io import StringIO
from itertools import pairwise
from textwrap import dedent
from typing import Any

import pytest

from toolcrib.contracts.workflows import EdgeKind, GraphEdge, GraphNode, WorkflowGraph, WorkflowProblem
from toolcrib.crib.project.yaml_text import line_of
from toolcrib.interfaces.cli.render.console import console
from toolcrib.interfaces.cli.render.graphs import draw_graph

pytestmark = pytest.mark.requirement("workflow_cli.show", "workflow_cli.check")


def node(name: str, **fields: Any) -> GraphNode:
    """A step that calls a tool of its own name."""
    return GraphNode.model_validate({"name": name, "kind": "tool", "reference": f"call_{name}", **fields})


def edge(source: str, target: str, kind: EdgeKind = "data", **fields: Any) -> GraphEdge:
    """An edge."""
    return GraphEdge(source=source, target=target, kind=kind, path=f"/{target}", **fields)


def text(*parts: GraphNode | GraphEdge, problems: tuple[WorkflowProblem, ...] = ()) -> str:
    """The graph of these, as it is printed."""
    nodes = tuple(part for part in parts if isinstance(part, GraphNode))
    edges = tuple(part for part in parts if isinstance(part, GraphEdge))
    file = StringIO()
    console(file).print(draw_graph(WorkflowGraph(workflow="w@1.0.0", nodes=nodes, edges=edges, problems=problems)))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def test_steps_that_follow_one_another_stand_in_a_row_and_those_side_by_side_on_branches():
    edges = (edge("input", "a"), edge("a", "b"), edge("b", "c"), edge("b", "d"), edge("c", "e"), edge("d", "e"))
    drawn = text(
        node("a", tool="call_a@1.2.0", side_effects="writes", account="clerk"),
        *map(node, "bcde"),
        node("f", kind="value", reference=None),
        *edges,
    )

    assert drawn == dedent("""\
        w@1.0.0: ok
        ├── a  tool call_a → call_a@1.2.0, writes, as clerk
        │   └── b  tool call_b
        │       ├── c  tool call_c
        │       └── d  tool call_d
        │           └── e  tool call_e  after c, d
        └── f  value
        """)


def test_what_has_become_of_steps_and_edges_stands_below_them():
    drawn = text(
        node("a", state="held", reason="output.x is gone"),
        node("b"),
        node("c", state="broken"),
        edge("a", "b", state="broken", reason="nothing brings x", reference="a.x"),
        edge("b", "c", "error"),
        edge("b", "output", state="held", reason="y is a list now"),
        problems=(WorkflowProblem(path="/steps/0", message="is old", suggestion="renew it", is_error=False),),
    )

    assert drawn == dedent("""\
        w@1.0.0: broken
        ├── a  tool call_a
        │     held: output.x is gone
        ├── b  tool call_b
        │     broken: /b (a.x): nothing brings x
        └── c  tool call_c  if b fails
              broken: no reason is known

          held: /output (b): y is a list now
        warning: /steps/0: is old; renew it
        """)


def test_why_a_step_does_not_work_stands_once_and_not_at_each_of_its_edges():
    why = "tool 'call_b' is blocked"
    drawn = text(
        node("a"),
        node("b", state="broken", reason=why),
        node("c"),
        edge("a", "b", state="broken", reason=f"step 'b' does not work: {why}"),
        edge("b", "c", state="broken", reason=f"step 'b' does not work: {why}"),
        edge("b", "output", state="broken", reason="z is gone"),
    )

    assert drawn == dedent("""\
        w@1.0.0: broken
        ├── a  tool call_a
        ├── b  tool call_b
        │     broken: tool 'call_b' is blocked
        └── c  tool call_c

          broken: /output (b): z is gone
        """)


def test_steps_of_a_circle_and_edges_to_nowhere_are_drawn_as_well():
    drawn = text(*map(node, "abc"), edge("a", "b"), edge("b", "a"), edge("gone", "c"))

    assert drawn == dedent("""\
        w@1.0.0: ok
        ├── c  tool call_c
        └── a  tool call_a  after b
            └── b  tool call_b
        """)


def test_a_chain_of_five_thousand_steps_is_drawn_in_one_row():
    names = [f"s{index}" for index in range(5000)]
    drawn = text(*map(node, names), *(edge(a, b) for a, b in pairwise(names)))

    assert drawn.splitlines()[-1] == "└── s4999  tool call_s4999"


@pytest.mark.parametrize(
    ("pointer", "line"),
    [("", 1), ("/name", 1), ("/steps/1", 4), ("/steps/1/input/a~1b", 6), ("/steps/1/nothing/here", 4), ("/steps/9", 2)],
)
def test_the_line_of_a_place_is_that_of_the_last_part_that_there_is(pointer: str, line: int):
    document = "name: w\nsteps:\n- name: a\n- name: b\n  input:\n    a/b: 1\n"

    assert line_of(document, pointer) == line


def test_an_empty_file_has_one_line():
    assert line_of("", "/steps/0") == 1

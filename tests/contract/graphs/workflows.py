"""Twenty graphs that use the tool `stock`, at some depth and in some way, and four that do not."""

from dataclasses import dataclass

from toolcrib import Crib
from toolcrib.contracts import JsonObject
from toolcrib.contracts.workflows import WorkflowDefinition

INPUT: JsonObject = {"sku": "a", "skus": ["a", "b", "c"]}


@dataclass(frozen=True)
class Graph:
    """A workflow, and what it is bound to at any depth."""

    name: str
    uses: frozenset[str]
    """Names of the tools, of the vocabulary and of the workflows below it."""
    steps: tuple[JsonObject, ...]
    output: str | None = None

    @property
    def definition(self) -> WorkflowDefinition:
        """The document that is published."""
        schema = {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "skus": {"type": "array", "items": {"type": "string"}}},
            "required": ["sku", "skus"],
        }
        document = {"name": self.name, "input_schema": schema, "steps": self.steps, "output": self.output}
        return WorkflowDefinition.model_validate(document)


def graph(name: str, uses: str, *steps: JsonObject, output: str | None = None) -> Graph:
    """A graph of steps; what it uses is written with spaces between."""
    return Graph(name, frozenset(uses.split()), steps, output)


def call(name: str, tool: str = "stock", sku: str = "${input.sku}", **fields: object) -> JsonObject:
    """A step that calls a tool of the world."""
    return {"name": name, "tool": tool, "input": {"sku": sku}, **fields}


_BELOW: JsonObject = {"sku": "${input.sku}", "skus": "${input.skus}"}
_ASK: JsonObject = {"message": "What is there of ${input.sku}?"}

GRAPHS: tuple[Graph, ...] = (
    graph("single", "stock", call("s")),
    graph("chain", "stock price", call("s"), call("p", "price", "${s.by}", output={"n": "${s.total + output.total}"})),
    graph(
        "fan_out",
        "stock",
        call("s", sku="${item}", for_each="${input.skus}", output={"n": "${output.total}", "by": "${output.by}"}),
    ),
    graph(
        "join",
        "stock price book",
        call("s"),
        call("p", "price"),
        call("b", "book", "${s.by}-${p.by}", depends_on=["s", "p"]),
    ),
    graph(
        "go_to",
        "stock refund",
        call("s", on_error={"go_to": "r"}),
        call("r", "refund", "${error.code}"),
        output="${steps.s.output}",
    ),
    graph("conditional", "stock book", call("s"), call("b", "book", "${s.by}", condition="${s.total > 0}")),
    graph(
        "bound_condition",
        "stock book enough",
        call("s"),
        call("b", "book", "${s.by}", condition={"ref": "enough", "input": {"n": "${s.total}"}}),
    ),
    graph("handler", "stock shop.stock", {"name": "s", "handler_ref": "shop.stock"}),
    graph("sub", "stock single", {"name": "w", "workflow": "single", "input": _BELOW}),
    graph("sub_two", "stock single sub", {"name": "w", "workflow": "sub", "input": _BELOW}),
    graph("agent_node", "stock scout", {"name": "a", "agent": "scout", "input": _ASK}, output="${a.response}"),
    graph(
        "agent_and_tool",
        "stock scout",
        call("s"),
        {"name": "a", "agent": "scout", "input": {"message": "${s.by}"}},
        output="${[s.by, a.response]}",
    ),
    graph("composed", "stock lookup", call("c", "lookup")),
    graph("composed_twice", "stock lookup outer_lookup", call("c", "outer_lookup")),
    graph(
        "approved",
        "stock book",
        call("s"),
        {"name": "ask", "approval": {"message": "Book ${s.total}?", "show": {"n": "${s.total}"}}},
        call("b", "book", "${s.by}", depends_on=["ask"]),
    ),
    graph("retried", "stock", call("s", retry={"count": 2}, timeout_s=30)),
    graph(
        "compensated",
        "stock flaky refund",
        call("s"),
        call("f", "flaky", "${s.by}", on_error={"go_to": "undo"}),
        call("undo", "refund", "${s.by}"),
        output="${undo.by}",
    ),
    graph("ranged", "stock", call("s", "stock@^1.0.0")),
    graph("exact", "stock", call("s", "stock@1.0.0"), output="${s.lines[0].sku}"),
    graph("fallen_back", "stock shaky", call("s", "shaky")),
    graph("unrelated", "price", call("p", "price")),
    graph("unrelated_sub", "price unrelated", {"name": "w", "workflow": "unrelated", "input": _BELOW}),
    graph("unrelated_agent", "price pricer", {"name": "a", "agent": "pricer", "input": _ASK}, output="${a.response}"),
    graph("toolless", "", {"name": "v", "output": "${input.sku}"}),
)


async def publish_all(crib: Crib) -> None:
    """Publish them, those below others first."""
    for each in GRAPHS:
        await crib.workflows.publish(each.definition)

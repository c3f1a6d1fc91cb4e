"""The site of the documentation: its navigation, its links, its build, and the references that are made from code."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import toolcrib
from toolcrib.contracts import MODEL_ERROR_KINDS
from toolcrib.contracts.base.errors import ErrorCode, Reason
from tools.docs import commands, pages, python_reference, reference, site
from tools.structure import banned_words

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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site."""
    return site.build(ROOT, tmp_path_factory.mktemp("docs"))


@pytest.mark.requirement("docs.site")
def test_the_site_is_built_without_a_warning_and_every_page_is_in_it(built: Path) -> None:
    written = {page.removesuffix(".md") + ".html" for page in pages.pages(ROOT)}
    assert {page for page in written if not (built / page).is_file()} == set()
    assert "search" in (built / "index.html").read_text(encoding="utf-8")
    assert (built / "search.json").stat().st_size > 100_000


@pytest.mark.requirement("docs.site")
def test_nothing_in_the_site_is_loaded_from_another_host(built: Path) -> None:
    assert list(site.foreign_loads(built)) == []
    addresses = {
        address
        for script in built.rglob("*.js")
        for address in re.findall(r"https?://[\w.-]+", script.read_text(encoding="utf-8"))
    }
    assert addresses <= {"http://www.w3.org"}


@pytest.mark.requirement("docs.site")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", "<link rel=stylesheet href=//fonts.example/x.css>"),
        ("a.html", '<img alt="" src="http://images.example/x.png">'),
        ("a.css", "@import 'https://fonts.example/x.css';"),
        ("a.css", "p { background: url(https://images.example/x.png) }"),
        ("a.js", 'load("https://cdn.example/x.js")'),
    ],
)
def test_what_would_be_loaded_from_another_host_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "b.html").write_text('<a href="https://other.example">a link</a>', encoding="utf-8")
    assert len(list(site.foreign_loads(tmp_path))) == 1


@pytest.mark.requirement("docs.site")
def test_a_link_to_nothing_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "schemas").mkdir(parents=True)
    (tmp_path / "docs" / "decisions").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[nothing](gone.md)\n", encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text("site_name: A\nnav: [index.md]\n", encoding="utf-8")

    def no_references(_: Path) -> dict[str, str]:
        return {}

    monkeypatch.setattr(site, "references", no_references)
    with pytest.raises(RuntimeError, match=r"gone\.md"):
        site.build(tmp_path, tmp_path / "build")


@pytest.mark.requirement("docs.references")
def test_the_references_name_everything() -> None:
    made = site.references(ROOT)
    python = made["generated/python.md"]
    assert [name for name in toolcrib.__all__ if f"### {name}\n" not in python and name != "Crib"] == []
    for attribute, part in python_reference.parts():
        missing = [name for name, _ in python_reference.methods(part) if f"### crib.{attribute}.{name}\n" not in python]
        assert missing == []
    for path, operations in reference.rest_document()["paths"].items():
        for method in operations:
            assert f"### `{method.upper()} {path}`\n" in made["generated/rest.md"]
    whole = {ROOT / "docs" / "schemas" / name for name in reference.WHOLE}
    schemas = sorted(set((ROOT / "docs" / "schemas").glob("*.json")) - whole)
    assert [file.stem for file in schemas if f"## {file.stem}\n" not in made["generated/contracts.md"]] == []


@pytest.mark.requirement("docs.troubleshooting")
def test_troubleshooting_has_every_code_reason_exception_and_failure_of_a_model() -> None:
    page = pages.pages(ROOT)["troubleshooting.md"]
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    assert [code for code in ErrorCode if code not in sections] == []
    tables = "".join(sections[code] for code in ErrorCode)
    assert [reason for reason in Reason if f"`{reason}`" not in tables] == []
    assert [each for each in reference.exceptions() if f"`{each.code}` | `{each.__name__}` |" not in page] == []
    assert [kind for kind in MODEL_ERROR_KINDS if f"`{kind}`" not in sections["Failures of models"]] == []
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", "".join(re.findall(r"^\| (.*?) \|", tables, re.MULTILINE))))
    assert named <= {str(reason) for reason in Reason}


@pytest.mark.requirement("docs.commands")
@pytest.mark.parametrize("path", [*pages.pages(ROOT), "../README.md"])
def test_every_command_and_option_of_a_page_exists(path: str) -> None:
    text = (ROOT / pages.DOCS / path).read_text(encoding="utf-8")
    lines = re.findall(r"^(?:    )?\$? ?(?:uvx )?toolcrib ([a-z][^#\n]*)|`toolcrib ([a-z][^`]*)`", text, re.MULTILINE)
    for line in (block or inline for block, inline in lines):
        found = commands.find(line.split())
        assert found is not None, f"toolcrib {line}"
        known = {*found.options, "--help"}
        assert set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", line)) <= known, f"toolcrib {line}"


@pytest.mark.requirement("docs.specifications")
def test_every_route_that_a_page_about_a_specification_maps_to_exists() -> None:
    paths = reference.rest_document()["paths"]
    routes = {f"{method.upper()} {path.removeprefix('/api/v1')}" for path, found in paths.items() for method in found}
    count = 0
    for path, text in pages.pages(ROOT).items():
        if path.startswith("specifications/"):
            for row in re.findall(r"^\|.*\| (.*) \|$", text, re.MULTILINE):
                named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)`", row))
                assert named <= routes, path
                count += len(named)
    assert count >= 40


TERMS: Final = {
    "agentic-tools": "EmbeddedLLMCall AgenticToolCall toolAllocation availableTools executionMode embeddedLLMConfig "
    "contextConfig toolDescription safetyLimits AgenticToolExecution tenantId slug maxSteps "
    "maxDurationSeconds maxTokensPerCall maxTotalCost SafetyLimitError actionSlug user_task "
    "integration_schema reference_data regenerate-prompt test-prompt universal langchain",
    "agent-tools": "AgentOutputs ToolEnvelope BaseTool ToolContext ToolError PinnedHandle selector on_missing "
    "tools_by_id tool_order last_tool traces_url call_id side_effects cache_ttl_s category tenant_id "
    "max_iterations max_tool_calls max_budget deprecated blocked Materialize attachments ToolSelector",
    "client-handoff": "IAgentTool IAgentToolExecutor AgentToolCall IsToolFullyExecutedOnServer ToolUsageMetadata "
    "IsServerTool WasExecuted RequiresClientExecution AgentExecuteResponse ToolCalls AgentExecuteRequest "
    "ToolResultsJson AgentToolExecutionContext InvokeResult AgentReasoner ExecuteAsync Name compliance "
    "logging handoff",
    "tool-injection": "ToolDefinition signature useToolsWithAI wget finalResponse registry.ts executor.ts injector.ts "
    "parser.ts timeoutMs ToolParameter generateToolPrompt processToolCalls AutomationContext toolExecutor "
    "OpenRouter literals feedback detection regular",
    "agents": "ToolProviderConfig ToolGeneration AgentDefinition MemoryConfig principalRef AgentExecutionRequest "
    "AgentExecutionResponse ExecutionContext AgentConversation AgentConversationTurn ToolInvocation "
    "ToolFormatConverter ToolResolver GuardrailConfig AgentExecutionService FunctionalMapping "
    "ParameterDefinition hasSideEffects providerRef mcpTransport llmConfig toolRefs delegateAgentRefs "
    "allowedRealms AgentStreamEvent WorkflowInstance durationMs",
}
"""Terms of each specification, drawn from its text."""


@pytest.mark.requirement("docs.specifications")
@pytest.mark.parametrize("page", TERMS)
def test_a_page_about_a_specification_has_its_terms(page: str) -> None:
    text = pages.pages(ROOT)[f"specifications/{page}.md"]
    assert [term for term in TERMS[page].split() if term not in text] == []


@pytest.mark.requirement("docs.words")
@pytest.mark.parametrize("page", ["python", "rest", "errors", "contracts"])
def test_the_references_use_no_word_that_the_glossary_bans(page: str) -> None:
    banned = [word for word, each in banned_words(pages.pages(ROOT)["glossary.md"]).items() if each.in_pages]
    text = re.sub(r"```.*?```|`[^`]*`", "", site.references(ROOT)[f"generated/{page}.md"], flags=re.DOTALL)
    assert re.findall(rf"\b({'|'.join(map(re.escape, banned))})\b.*", text, re.IGNORECASE) == []


ODD: Final = (
    "second thing that you define", "a process that dies", "is to be had", "merely lies", "and then judges",
    "how runs of workflows stand", "take out runs", "job that attacks", "events of a run again", "hold two runs",
    "if nobody knew", "whom a workflow concerns", "has to be told", "in earnest", "a schema that is none",
    "circle of agents", "of the many, nobody", "what came of it stands", "who has read what",
    "list is parted by commas",
    "shall not lie", "is said to be so", "that is no json", "what their words are", "so it is no tool",
    "begins anew", "losses matter to calls",
)  # fmt: skip
"""The odd phrases that new readers have found, in small letters."""


@pytest.mark.requirement("docs.words")
def test_no_page_reference_or_text_of_the_source_has_an_odd_phrase_that_readers_found() -> None:
    sources = {str(file): file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py")}
    readme = {"README.md": (ROOT / "README.md").read_text("utf-8")}
    found = [
        (path, phrase)
        for path, text in {**pages.pages(ROOT), **readme, **sources}.items()
        for phrase in ODD
        if path != "glossary.md" and phrase in " ".join(text.lower().split())
    ]
    assert found == []


@pytest.mark.requirement("docs.words")
def test_what_says_that_a_variable_is_not_released_says_what_releases_it() -> None:
    recorded = "pipeline.py"  # journals have its words
    texts = [
        ast.unparse(node)
        for file in (ROOT / "src").rglob("*.py")
        if file.name != recorded
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.JoinedStr)
    ]
    told = [text for text in texts if "not released" in text]
    assert len(told) >= 5
    assert [text for text in told if "TOOLCRIB_RELEASED_ENV" not in text] == []


@pytest.mark.requirement("docs.words")
def test_a_page_links_a_term_to_the_glossary_where_it_first_uses_it() -> None:
    checked = {path: text for path, text in pages.pages(ROOT).items() if pages.checks_terms(path)}
    found = {path: [term for term, _, _ in pages.first_uses(text)] for path, text in checked.items()}
    assert {path: terms for path, terms in found.items() if terms} == {}, "link them: python -m tools.docs.pages"


@pytest.mark.requirement("docs.words")
def test_a_first_use_is_found_outside_of_code_headings_and_links() -> None:
    text = "# A realm\n\n`realm` [the realm](x.md) and an envelope.\n\n    a lease\n"
    assert [term for term, _, _ in pages.first_uses(text)] == ["envelope"]
    linked = pages.with_links("tutorials/page.md", text)
    assert "an [envelope](../glossary.md#runs)." in linked
    assert list(pages.first_uses(linked)) == []
    assert pages.with_links("page.md", linked) == linked

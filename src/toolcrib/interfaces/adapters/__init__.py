"""Tools of a crib in other frameworks, and tools of other frameworks in a crib.

| module | framework | out of the crib | into the crib |
|---|---|---|---|
| `langchain` | LangChain, LangGraph | `await load(crib)` | `tools(...)` |
| `pydantic_ai` | pydantic-ai | `CribToolset(crib)` | `await tools(...)` |
| `openai_agents` | OpenAI Agents SDK | `await load(crib)` | `tools(...)` |
| `openai_functions` | definitions of functions | `crib.export(form="openai")` | `function_tool(...)` |

Each call out of the crib is a run of the principal for whom the crib acts: with visibility, policy, approvals and the
journal. Each module needs the extra of its name.

    from toolcrib import langchain
"""

"""LangGraph: the graph that LangChain's `create_agent` compiles, on its OpenAI chat model, without a checkpointer."""

from contextlib import asynccontextmanager

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from benchmarks.measure import main
from benchmarks.script import INSTRUCTIONS, QUESTION, get_time, get_weather


@asynccontextmanager
async def open_run(plan):
    """One compiled graph for all runs."""
    model = ChatOpenAI(model=plan.model, base_url=plan.base_url, api_key="none")
    agent = create_agent(model, tools=[tool(get_weather), tool(get_time)], system_prompt=INSTRUCTIONS)

    async def run():
        state = await agent.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})
        return state["messages"][-1].content

    yield run


if __name__ == "__main__":
    main(open_run)

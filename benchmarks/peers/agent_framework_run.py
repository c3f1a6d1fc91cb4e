"""Microsoft Agent Framework: an `Agent` on its OpenAI Chat Completions client."""

from contextlib import asynccontextmanager

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.measure import main
from benchmarks.script import INSTRUCTIONS, QUESTION, get_time, get_weather


@asynccontextmanager
async def open_run(plan):
    """One agent for all runs."""
    client = OpenAIChatCompletionClient(model=plan.model, base_url=plan.base_url, api_key="none")
    agent = Agent(client=client, instructions=INSTRUCTIONS, tools=[get_weather, get_time])

    async def run():
        return (await agent.run(QUESTION)).messages[-1].text

    yield run


if __name__ == "__main__":
    main(open_run)

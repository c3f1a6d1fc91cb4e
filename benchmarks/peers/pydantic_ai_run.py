"""Pydantic AI: an `Agent` on its OpenAI Chat Completions model."""

from contextlib import asynccontextmanager

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.measure import main
from benchmarks.script import INSTRUCTIONS, QUESTION, get_time, get_weather


@asynccontextmanager
async def open_run(plan):
    """One agent for all runs."""
    model = OpenAIChatModel(plan.model, provider=OpenAIProvider(api_key="none", base_url=plan.base_url))
    agent = Agent(model, instructions=INSTRUCTIONS, tools=[get_weather, get_time])

    async def run():
        return (await agent.run(QUESTION)).output

    yield run


if __name__ == "__main__":
    main(open_run)

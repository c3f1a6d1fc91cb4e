"""OpenAI Agents SDK: an `Agent` on its Chat Completions model, tracing off."""

from contextlib import asynccontextmanager

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from benchmarks.measure import main
from benchmarks.script import INSTRUCTIONS, QUESTION, get_time, get_weather


@asynccontextmanager
async def open_run(plan):
    """One agent for all runs."""
    set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(api_key="none", base_url=plan.base_url)
    agent = Agent(
        name="bench",
        instructions=INSTRUCTIONS,
        tools=[function_tool(get_weather), function_tool(get_time)],
        model=OpenAIChatCompletionsModel(plan.model, openai_client=client),
    )

    async def run():
        return (await Runner.run(agent, QUESTION)).final_output

    yield run


if __name__ == "__main__":
    main(open_run)

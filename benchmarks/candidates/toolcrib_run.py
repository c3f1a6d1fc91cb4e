"""Toolcrib as a newcomer writes it: validation, guard, envelopes, and a journal in the plan's store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from benchmarks.measure import Plan, Run, main
from benchmarks.script import QUESTION, get_time, get_weather
from toolcrib import Crib, tool


@asynccontextmanager
async def open_run(plan: Plan) -> AsyncGenerator[Run]:
    """One crib and one agentic tool for all runs."""
    async with Crib(plan.store, environment={"OPENAI_API_KEY": "benchmark"}) as crib:
        crib.add(tool(side_effects="none")(get_weather), tool(side_effects="none")(get_time))
        bench = crib.agentic_tool(
            "bench",
            mode="agentic",
            model=f"openai:{plan.model}",
            base_url=plan.base_url,
            tools=["get_weather", "get_time"],
        )

        async def run() -> str:
            return (await bench(QUESTION)).unwrap()["summary"]

        yield run


if __name__ == "__main__":
    main(open_run)

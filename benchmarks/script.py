"""The one conversation that every candidate holds with the mock provider, and the tools it calls.

A run is three model calls: two parallel tool calls in each of the first two answers, then the final text. The tools
are trivial on purpose: what is left to measure is the loop around them. Standard library only, because each peer
imports this module in an environment of its own.
"""

INSTRUCTIONS = "You are a helpful assistant."
QUESTION = "What is the weather in Paris and the time in Oslo?"
INTERIM = "Let me check."
ANSWER = "It is sunny in Paris and 12:00 in Oslo."

TURNS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("get_weather", "Paris"), ("get_time", "Oslo")),
    (("get_weather", "Lyon"), ("get_time", "Bergen")),
)
"""For each answer with tool calls: the tool's name and its only argument, `city`, of each parallel call."""


async def get_weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city: City name.
    """
    return f"sunny in {city}"


async def get_time(city: str) -> str:
    """Tell the local time in a city.

    Args:
        city: City name.
    """
    return f"12:00 in {city}"

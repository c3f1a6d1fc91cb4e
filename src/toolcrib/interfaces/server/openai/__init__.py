"""The OpenAI-compatible endpoint: agents as models of chat completions and of the Responses API, under `/v1`.

A request is a run of the agent, like every other execution. Only the formats are those of OpenAI.
"""

"""Items, answers and events of the OpenAI Responses API, for the tests of its wire."""

import json
from typing import Any

from toolcrib.llm import Response, ResponsesWire

ORIGIN = "openai-responses"

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look"}, {"type": "summary_text", "text": "twice"}],
    "encrypted_content": "gAAA",
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "look",
    "arguments": '{"a": 1}',
    "status": "completed",
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}


def message(*pieces: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(pieces), **fields}


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], **fields}


def answer(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "model": "m-1", "status": "completed", "error": None, "output": items, **fields}


def parsed(*items: Any, **fields: Any) -> Response:
    return ResponsesWire().parse(json.dumps(answer(*items, **fields)).encode())


def event(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, **fields}


def completed(*items: Any, **fields: Any) -> dict[str, Any]:
    return event("completed", response=answer(*items, **fields))

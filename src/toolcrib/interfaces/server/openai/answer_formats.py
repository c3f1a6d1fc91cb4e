"""Answers in OpenAI's formats: chat completions and their chunks, responses and their typed events."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final

from toolcrib.contracts import AgentResponse, Json, JsonObject, ToolEnvelope, Usage
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.openai.agent_replies import (
    KEEP_ALIVE,
    AgentReply,
    BegunRun,
    Finish,
    SpokenPiece,
    SpokenText,
    arguments_of,
    as_json,
    client_call_id,
    facts_of,
    reply_of,
    response_id,
)
from toolcrib.interfaces.server.openai.error_bodies import error_of_run

_REASONS: Final[dict[Finish, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ChatFormat:
    """What the answers to one request have in common.

    Args:
        run_id: The run.
        model: As the client has named it.
        created: Seconds since 1970.
    """

    def __init__(self, run_id: str, model: str, created: int) -> None:
        self._run_id = run_id
        self._head: JsonObject = {
            "id": f"chatcmpl-{run_id.removeprefix('run_')}",
            "created": created,
            "model": model,
        }

    def completion(self, reply: AgentReply) -> JsonObject:
        """The whole answer."""
        message: JsonObject = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.finish == "tool_calls":
            message["tool_calls"] = self._tool_calls(reply.state)
        choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _chat_usage(reply.state.usage),
            "toolcrib": facts_of(reply.state),
        }

    async def stream(
        self, crib: ActingCrib, spoken: SpokenText, pieces: AsyncGenerator[SpokenPiece | None], *, usage: bool
    ) -> AsyncGenerator[str]:
        """The answer in chunks, as server-sent events.

        Args:
            crib: Acts as the client's principal.
            spoken: What the agent has said.
            pieces: What it says.
            usage: Whether a last chunk has the usage.
        """
        yield self._chunk({"role": "assistant", "content": ""})
        segment = 0
        async with aclosing(pieces):
            async for piece in pieces:
                if piece is None:
                    yield KEEP_ALIVE
                    continue
                gap, segment = "\n\n" * (piece.segment - segment), piece.segment
                yield self._chunk({"content": gap + piece.text})
        reply = reply_of(await crib.executions.respond(self._run_id))
        if reply.finish == "error":
            yield _chat_event({"error": error_of_run(reply.state)[1]})
        else:
            piece = spoken.finish(reply.text)
            if piece is not None:
                yield self._chunk({"content": "\n\n" * (piece.segment - segment) + piece.text})
            for message in self._end(reply, usage=usage):
                yield message
        yield "data: [DONE]\n\n"

    def _end(self, reply: AgentReply, *, usage: bool) -> Iterator[str]:
        if reply.finish == "tool_calls":
            calls = [{"index": place, **call} for place, call in enumerate(self._tool_calls(reply.state))]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, finish=reply.finish, toolcrib=facts_of(reply.state))
        if usage:
            head = {**self._head, "object": "chat.completion.chunk"}
            yield _chat_event({**head, "choices": [], "usage": _chat_usage(reply.state.usage)})

    def _chunk(self, delta: JsonObject, *, finish: str | None = None, **more: Json) -> str:
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _chat_event({**self._head, "object": "chat.completion.chunk", "choices": [choice], **more})

    def _tool_calls(self, state: AgentResponse) -> list[JsonObject]:
        return [
            {
                "id": client_call_id(call, self._run_id),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_of(call)},
                "toolcrib_payload": call.output,
            }
            for call in state.tool_calls
        ]


class ResponseFormat:
    """What the answers to one request have in common.

    Args:
        begun: The run.
        model: As the client has named it.
        created: Seconds since 1970.
        previous: The response that was continued.
        metadata: As the client has sent it.
    """

    def __init__(
        self,
        begun: BegunRun,
        model: str,
        created: int,
        *,
        previous: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> None:
        self._begun = begun
        self._head: JsonObject = {
            "id": response_id(begun.run_id, begun.events),
            "object": "response",
            "created_at": created,
            "model": model,
            "previous_response_id": previous,
            "metadata": metadata or {},
            "instructions": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": None,
            "top_p": None,
            "truncation": "disabled",
            "text": {"format": {"type": "text"}},
        }

    def unfinished(self, state: AgentResponse) -> JsonObject:
        """The response while its run is active."""
        status = "queued" if state.status == "queued" else "in_progress"
        return self._response(status, state, [])

    def finished(self, reply: AgentReply) -> JsonObject:
        """The response in its end."""
        output = [self.message(0, reply.text, "completed", "final_answer")] if reply.text else []
        return self.ended(reply, [*output, *map(self.call, reply.state.tool_calls)])

    async def stream(
        self, crib: ActingCrib, state: AgentResponse, spoken: SpokenText, pieces: AsyncGenerator[SpokenPiece | None]
    ) -> AsyncGenerator[str]:
        """The events of the response, as server-sent events.

        Args:
            crib: Acts as the client's principal.
            state: Of the run, as it has begun.
            spoken: What the agent has said.
            pieces: What it says.
        """
        events = _ResponseEvents(self)
        active = self._response("in_progress", state, [])
        yield events.event("response.created", response=active)
        yield events.event("response.in_progress", response=active)
        async with aclosing(pieces):
            async for piece in pieces:
                for event in (KEEP_ALIVE,) if piece is None else events.say(piece):
                    yield event
        reply = reply_of(await crib.executions.respond(self._begun.run_id))
        piece = spoken.finish(reply.text)
        for event in events.say(piece) if piece is not None else ():
            yield event
        for event in events.end(reply):
            yield event

    def ended(self, reply: AgentReply, output: list[JsonObject]) -> JsonObject:
        """The response in its end, with these items."""
        state, reason = reply.state, _REASONS.get(reply.finish)
        status = "incomplete" if reason else "completed"
        if reply.finish == "error":
            status = "cancelled" if state.status == "cancelled" else "failed"
        return self._response(status, state, output, reason)

    def _response(
        self, status: str, state: AgentResponse, output: list[JsonObject], reason: str | None = None
    ) -> JsonObject:
        error: Json = None
        if status == "failed":
            told = error_of_run(state)[1]
            error = {"code": "server_error", "message": told["message"], "reason": told["code"]}
        conversation = state.conversation_id
        return {
            **self._head,
            "status": status,
            "error": error,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "conversation": {"id": conversation} if conversation else None,
            "store": conversation is not None,
            "usage": _response_usage(state.usage),
            "toolcrib": facts_of(state),
        }

    def message(self, place: int, text: str, status: str, phase: str | None = None) -> JsonObject:
        """A message of the assistant, as an item of the output."""
        return {
            "id": f"msg_{str(self._head['id']).removeprefix('resp_')}_{place}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "phase": phase,
            "content": [_part(text)] if status != "in_progress" else [],
        }

    def call(self, call: ToolEnvelope) -> JsonObject:
        """A call that waits for the client, as an item of the output."""
        return {
            "id": f"fc_{call.call_id}",
            "type": "function_call",
            "status": "completed",
            "call_id": client_call_id(call, self._begun.run_id),
            "name": call.name,
            "arguments": arguments_of(call),
            "toolcrib_payload": call.output,
        }


class _ResponseEvents:
    """The events of one stream, numbered; items of the output are opened and closed as text comes."""

    def __init__(self, format_: ResponseFormat) -> None:
        self._format = format_
        self._sent = 0
        self._output: list[JsonObject] = []
        self._text: str | None = None
        """Of the message that is open."""
        self._segment = -1

    def event(self, kind: str, **fields: Json) -> str:
        """An event."""
        body: JsonObject = {"type": kind, "sequence_number": self._sent, **fields}
        self._sent += 1
        return f"event: {kind}\ndata: {as_json(body)}\n\n"

    def say(self, piece: SpokenPiece) -> Iterator[str]:
        """Some text."""
        if piece.segment != self._segment:
            yield from self._close("commentary")
            self._segment, self._text = piece.segment, ""
            place = {"output_index": len(self._output)}
            item = self._format.message(len(self._output), "", "in_progress")
            yield self.event("response.output_item.added", **place, item=item)
            yield self.event("response.content_part.added", **self._place(), part=_part(""))
        self._text = (self._text or "") + piece.text
        yield self.event("response.output_text.delta", **self._place(), delta=piece.text, logprobs=[])

    def end(self, reply: AgentReply) -> Iterator[str]:
        """The client calls, and the response in its end."""
        yield from self._close("commentary" if reply.state.tool_calls else "final_answer")
        for item in map(self._format.call, reply.state.tool_calls):
            place: JsonObject = {"output_index": len(self._output)}
            arguments, item_id = item["arguments"], item["id"]
            yield self.event(
                "response.output_item.added", **place, item={**item, "arguments": "", "status": "in_progress"}
            )
            yield self.event("response.function_call_arguments.delta", **place, item_id=item_id, delta=arguments)
            yield self.event(
                "response.function_call_arguments.done",
                **place,
                item_id=item_id,
                name=item["name"],
                arguments=arguments,
            )
            yield self.event("response.output_item.done", **place, item=item)
            self._output.append(item)
        response = self._format.ended(reply, self._output)
        ends = {"completed": "completed", "incomplete": "incomplete"}
        yield self.event(f"response.{ends.get(response['status'], 'failed')}", response=response)

    def _close(self, phase: str) -> Iterator[str]:
        if self._text is None:
            return
        item = self._format.message(len(self._output), self._text, "completed", phase)
        yield self.event("response.output_text.done", **self._place(), text=self._text, logprobs=[])
        yield self.event("response.content_part.done", **self._place(), part=_part(self._text))
        yield self.event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._text = None

    def _place(self) -> JsonObject:
        place = len(self._output)
        item_id = self._format.message(place, "", "in_progress")["id"]
        return {"item_id": item_id, "output_index": place, "content_index": 0}


def _chat_usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _chat_event(body: JsonObject) -> str:
    return f"data: {as_json(body)}\n\n"


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }

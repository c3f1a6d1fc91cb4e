"""The transport to a model in this process: it answers Chat Completions requests.

It uses the bytes of that API, so structured answers, tools by schema, limits and prices work as for every other model.
A model is loaded once per file and process, by the first request, and answers one request at a time, in a thread. A
cancelled request stops generating. Conversations are rendered in the ChatML format; its marks are removed from the
texts of people and tools, so that no text can pose as another speaker.
"""

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from time import time
from typing import Any, Final, Protocol, cast

import orjson

from toolcrib.contracts.base.errors import InvalidSettings, ModelError, missing_extra
from toolcrib.infrastructure.net import HttpResponse, HttpStream, Timeouts
from toolcrib.llm.local.installable import find_model

STOP: Final = ("<|im_end|>", "<|im_start|>", "<|endoftext|>")
_MARKS: Final = re.compile(r"<\|(?:im_start|im_end|endoftext)\|>")


def prompt_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of a conversation, ready for the model's turn."""
    turns = [f"<|im_start|>{_role(message)}\n{_message_text(message)}<|im_end|>\n" for message in messages]
    return "".join([*turns, "<|im_start|>assistant\n"])


def _role(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", "user"))
    return role if role in {"system", "assistant"} else "user"


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        parts = [cast("Mapping[str, Any]", part) for part in cast("list[Any]", content)]
        content = "\n".join(str(part.get("text", "")) for part in parts)
    return _MARKS.sub("", str(content))


CONTEXT_TOKENS = 8192
"""What a conversation and its answer may have together."""

LONGEST_ANSWER = 1024
"""Tokens; a small model that writes more repeats itself."""

_MOST_BLANKS = 100
"""Characters of white space in a row."""

_JSON = {"content-type": "application/json"}
_STREAM = {"content-type": "text/event-stream"}


class TextGenerator(Protocol):
    """What generates text: the inference library's server object."""

    def handle_completions(self, data: Mapping[str, Any], callback: Callable[[Any], bool], /) -> Any:
        """Generate; the callback gets each piece and ends the generation by returning true."""
        ...


Load = Callable[[Path, int], TextGenerator]
"""Loads a file with so many threads."""


def load_engine(path: Path, threads: int) -> TextGenerator:
    """The engine of the extra `local`.

    Raises:
        InvalidSettings: The extra is not installed.
    """
    try:
        library: Any = import_module("xllamacpp")  # an optional package of 34 MB
    except ImportError:
        raise InvalidSettings(missing_extra("a local model", "xllamacpp", "local")) from None
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.offline = True
    params.verbosity = -1
    params.hostnames = ["127.0.0.1"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    return cast("TextGenerator", library.Server(params))


class _Loaded:
    """A model in memory, used by one request at a time, in a thread of its own: others wait without holding one."""

    def __init__(self, path: Path, threads: int, load: Load) -> None:
        self._path, self._threads, self._load = path, threads, load
        self._engine: TextGenerator | None = None
        self._thread = ThreadPoolExecutor(1, "toolcrib-local-model")

    def start(self, request: Mapping[str, Any], piece: Callable[[Any], bool]) -> "asyncio.Future[None]":
        """Generate; done when the last piece was handed over. Cancel it, and it does not begin if it has not yet."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._run, request, piece)

    def _run(self, request: Mapping[str, Any], piece: Callable[[Any], bool]) -> None:
        if self._engine is None:
            self._engine = self._load(self._path, self._threads)
        self._engine.handle_completions(request, piece)


_loaded: dict[Path, _Loaded] = {}
"""One model per file and process: it takes a gigabyte or more."""


class LocalTransport:
    """Answers Chat Completions requests with the model files of a folder.

    Args:
        folder: Where the files are, named as the models are.
        threads: How many a model may use; by default one per core.
        load: Loads a file.
    """

    def __init__(self, folder: Path, *, threads: int | None = None, load: Load = load_engine) -> None:
        self._folder = folder
        self._threads = threads or os.cpu_count() or 1
        self._load = load

    def _model(self, name: str) -> "_Loaded":
        path = self._folder / f"{find_model(name).name}.gguf"
        if not path.is_file():
            msg = f"model 'local:{name}' is not installed: there is no {path}; run: toolcrib model add {name}"
            raise InvalidSettings(msg)
        return _loaded.setdefault(path, _Loaded(path, self._threads, self._load))

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """See `Transport.post`."""
        text, last = "", dict[str, Any]()
        async for piece in self._pieces(body, timeouts):
            text += _text_of(piece)
            last = piece
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": _finish(last)}
        answer = {**_answer("chat.completion", last), "choices": [choice]}
        return HttpResponse(200, _JSON, orjson.dumps(answer), url)

    @asynccontextmanager
    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncGenerator[HttpStream]:
        """See `Transport.stream`."""
        yield HttpStream(200, _STREAM, url, self._events(body, timeouts))

    async def _events(self, body: bytes, timeouts: Timeouts) -> AsyncIterator[bytes]:
        last = dict[str, Any]()
        async for piece in self._pieces(body, timeouts):
            last = piece
            choice = {"index": 0, "delta": {"content": _text_of(piece)}, "finish_reason": None}
            yield _event({**_answer("chat.completion.chunk", {}), "choices": [choice]})
        choice: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": _finish(last)}
        yield _event({**_answer("chat.completion.chunk", last), "choices": [choice]})
        yield b"data: [DONE]\n\n"

    async def _pieces(self, body: bytes, timeouts: Timeouts) -> AsyncGenerator[dict[str, Any]]:
        """What the model says, piece by piece; leaving early ends the generation.

        Raises:
            ModelError: `timeout`, or `bad_response` if the engine refuses the request.
            InvalidSettings: The file or the inference library is missing.
            NotFound: No local model has that name.
        """
        wanted = orjson.loads(body)
        model = self._model(wanted["model"])
        loop, queue, given_up = asyncio.get_running_loop(), asyncio.Queue[Any](), threading.Event()

        def hand_over(item: Any) -> None:
            with suppress(RuntimeError):  # the loop may be gone when the thread ends after it
                loop.call_soon_threadsafe(queue.put_nowait, item)

        blanks = _Blanks()

        def piece(item: Any) -> bool:
            hand_over(item)
            return given_up.is_set() or blanks.too_many(_text_of(item))

        generation = model.start(_completion(wanted), piece)
        generation.add_done_callback(queue.put_nowait)
        try:
            async with asyncio.timeout(timeouts.total_s):
                while (item := await queue.get()) is not generation:
                    yield _check_piece(item)
                await generation
        except TimeoutError:
            raise ModelError("timeout", f"the local model did not answer within {timeouts.total_s} s") from None
        finally:
            given_up.set()
            generation.cancel()


class _Blanks:
    """Counts white space in a row: a grammar that lets nothing else through may let any amount of it."""

    def __init__(self) -> None:
        self._count = 0

    def too_many(self, text: str) -> bool:
        """Take note of the next piece of text."""
        rest = text.rstrip()
        self._count = len(text) - len(rest) + (0 if rest else self._count)
        return self._count > _MOST_BLANKS


def _completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request of the engine that a Chat Completions body means."""
    wanted: Mapping[str, Any] = body.get("response_format") or {}
    schema: Any = (wanted.get("json_schema") or dict[str, Any]()).get("schema")
    request: dict[str, Any] = {
        "prompt": prompt_of(body["messages"]),
        "stop": [*STOP],
        "n_predict": min(body.get("max_tokens") or LONGEST_ANSWER, LONGEST_ANSWER),
        "temperature": body.get("temperature", 0.2),
        "seed": body.get("seed", 1),
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if schema is not None:
        request["json_schema"] = schema
    if "top_p" in body:
        request["top_p"] = body["top_p"]
    return request


def _check_piece(piece: Any) -> dict[str, Any]:
    found = cast("dict[str, Any]", piece)
    failure = found.get("error")
    if failure:
        raise ModelError("bad_response", f"the local model could not answer: {failure.get('message', failure)}")
    return found


def _text_of(piece: Mapping[str, Any]) -> str:
    return "".join(str(choice.get("text") or "") for choice in piece.get("choices") or ())


def _finish(piece: Mapping[str, Any]) -> str:
    return next(
        (choice["finish_reason"] for choice in piece.get("choices") or () if choice.get("finish_reason")), "stop"
    )


def _answer(kind: str, piece: Mapping[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": piece.get("id", "local"), "object": kind, "created": int(time()), "model": "local"}
    return {**answer, "usage": piece["usage"]} if piece.get("usage") else answer


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"

"""Records what real models answer into a file, once and without secrets, and replays it without network.

A recording is a JSON file for the repository of the tests. It has each request, to be read by people, its hash and the
answer. A replayed request must be the same as a recorded one, apart from its time limits; equal requests are answered
in the order of the recording.
"""

import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import aclosing, contextmanager
from datetime import datetime
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import msgspec

from toolcrib.contracts import InvalidInput, InvalidSettings, JsonObject, LLMConfig, ModelError
from toolcrib.contracts.base.identity import content_hash
from toolcrib.crib import ActingCrib
from toolcrib.infrastructure.secrets import Redactor
from toolcrib.llm import (
    Cost,
    Done,
    Event,
    LanguageModel,
    Request,
    Response,
    ScriptedModel,
    TokenUsage,
    decode_response,
    messages_as_json,
    response_as_json,
)

RecordMode: TypeAlias = Literal["once", "none", "all"]
"""`once`: record if there is no file yet, else replay. `none`: only replay. `all`: record again."""

VERSION: Final = 1
_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PEPPER", re.IGNORECASE)
"""Environment variables whose values are removed."""
_SECRET_TEXT: Final = re.compile(
    r"\b(?:sk|pk|rk|xox[abp])[-_][\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_\w{30,}|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|(?<=Bearer )[\w.~+/=-]{8,}|(?<=://)[^/@\s\"]+:[^/@\s\"]+(?=@)"
)
"""Keys of usual forms, JSON web tokens, and passwords in addresses."""
_PLACEHOLDER: Final = "[secret]"


@contextmanager
def record_models(
    crib: ActingCrib, path: str | Path, *, mode: RecordMode = "once", secrets: Iterable[str] = ()
) -> Generator[Path]:
    """Have the models of a crib recorded in a block, or replayed from the file of an earlier one.

    Record with the crib of your application, which has keys and network; a replay needs neither. Commit the file.
    Values of environment variables whose names say that they are secret (`KEY`, `TOKEN`, ...), and texts that look like
    keys, are replaced by `[secret]` before anything is compared or written. The keys of the models themselves never
    reach the file. Read it before you commit it: what users and tools said is in it.

    Args:
        crib: Its models are recorded.
        path: The file; its folder is created.
        mode: `once`, `none` (for continuous integration) or `all`.
        secrets: Further values that must not be in the file.

    Yields:
        The path.

    Raises:
        InvalidInput: There is no such file, and it is not to be recorded; or it is not a recording. A request that was
            not recorded fails its run, with what differs from the closest one.

    Example:
        from toolcrib.testing import record_models

        for _ in range(2):  # the first records, the second replays
            with record_models(crib, "recordings/desk.json"):
                answer = await desk("Which deals has Acme?")
            print(answer.output)
    """
    path = Path(path)
    if mode not in get_args(RecordMode):
        raise InvalidInput(f"{mode!r} is not a record mode; use one of {', '.join(get_args(RecordMode))}")
    clean = _Cleaner(secrets)
    if mode == "none" or (mode == "once" and path.exists()):
        take_back = crib.models.substitute(partial(_replayed, crib, ModelRecording.read(path, clean)))
        try:
            yield path
        finally:
            take_back()
        return
    kept: list[JsonObject] = []
    take_back = crib.models.substitute(partial(_recorded, kept, clean), observes=True)
    try:
        yield path
    finally:
        take_back()
    path.parent.mkdir(parents=True, exist_ok=True)
    written = json.dumps({"version": VERSION, "exchanges": kept}, indent=1, ensure_ascii=False)
    path.write_text(written + "\n", encoding="utf-8")


class _Cleaner:
    """Removes secrets from JSON.

    Args:
        secrets: Values beside those of the environment.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        values = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
        self._redactor = Redactor([*values, *secrets])

    def __call__(self, value: JsonObject) -> JsonObject:
        """The same without secrets."""
        text = json.dumps(self._redactor.json(value), ensure_ascii=False)
        return json.loads(_SECRET_TEXT.sub(_PLACEHOLDER, text))


class ModelRecording:
    """The exchanges of a file.

    Args:
        path: The file, for messages.
        exchanges: What it has.
        clean: Removes secrets from requests before they are compared.
    """

    def __init__(self, path: Path, exchanges: list[JsonObject], clean: Callable[[JsonObject], JsonObject]) -> None:
        self._path = path
        self._exchanges = exchanges
        self._clean = clean
        self._left = list(exchanges)

    @classmethod
    def read(cls, path: Path, clean: Callable[[JsonObject], JsonObject]) -> "ModelRecording":
        """The recording in a file.

        Raises:
            InvalidInput: There is none, or it is of another version.
        """
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            msg = f"there is no recording {str(path)!r}; record it with mode='once', a key and network"
            raise InvalidInput(msg) from None
        except ValueError as problem:
            msg = f"recording {str(path)!r} is not JSON: {problem}; delete it and record it again"
            raise InvalidInput(msg) from None
        version = cast("JsonObject", stored).get("version") if isinstance(stored, dict) else None
        if version != VERSION:
            msg = f"recording {str(path)!r} has version {version!r}, not {VERSION}; delete it and record it again"
            raise InvalidInput(msg)
        return cls(path, cast("JsonObject", stored)["exchanges"], clean)

    def answer(self, model: str, request: Request) -> Response | ModelError:
        """What the model answered to the same request; each answer is given once.

        Raises:
            InvalidInput: There is no answer left; names what differs.
        """
        asked = self._clean(_readable(model, request))
        hashed = content_hash(asked)
        for exchange in self._left:
            if exchange["hash"] == hashed:
                self._left.remove(exchange)
                return _outcome(exchange)
        raise InvalidInput(self._difference(asked))

    def _difference(self, asked: JsonObject) -> str:
        msg = f"recording {str(self._path)!r} has no answer to this request; delete it and record it again"
        if not self._left:
            return f"{msg}. It has {len(self._exchanges)} exchanges, and all of them were used"
        recorded = min(self._left, key=lambda each: _distance(each["request"], asked))["request"]
        for part in asked:
            if recorded.get(part) != asked[part]:
                before, now = (
                    json.dumps(one.get(part), indent=1, ensure_ascii=False).splitlines() for one in (recorded, asked)
                )
                lines = unified_diff(before, now, f"{part} as recorded", f"{part} now", lineterm="", n=1)
                msg += "\n" + "\n".join(list(lines)[:20])
        return msg


def _distance(recorded: JsonObject, asked: JsonObject) -> int:
    """How much two requests differ: parts that do, those with few messages in common before others."""
    return sum(recorded.get(part) != asked[part] for part in asked) * 1000 + abs(
        len(recorded.get("messages", ())) - len(asked["messages"])
    )


def _readable(model: str, request: Request) -> JsonObject:
    """A request as JSON, without its time limits."""
    fields: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(request).items() if name not in {"timeouts", "tools"}
    }
    fields["messages"] = messages_as_json(request.messages)["messages"]
    fields["tools"] = request.tools.tools
    return {**msgspec.to_builtins(fields), "model": model}


def _outcome(exchange: JsonObject) -> Response | ModelError:
    if "error" in exchange:
        return ModelError(**exchange["error"])
    return decode_response(json.dumps(exchange["response"]))


def _replayed(
    crib: ActingCrib, recording: ModelRecording, llm: LLMConfig, opened: Callable[[], LanguageModel]
) -> LanguageModel:
    try:
        priced = crib.models.model(llm, own=True)  # a recorded answer costs what it would cost now
    except InvalidSettings:
        priced = opened()
    return _ReplayedModel(recording, llm.model, priced)


def _recorded(
    kept: list[JsonObject],
    clean: Callable[[JsonObject], JsonObject],
    llm: LLMConfig,
    opened: Callable[[], LanguageModel],
) -> LanguageModel:
    return _RecordedModel(llm.model, opened(), kept, clean)


class _ReplayedModel(ScriptedModel):
    """A model that answers from a recording, and costs what it did.

    Args:
        recording: The recording.
        reference: The model's name in definitions.
        model: The model that was recorded, which is not asked.
    """

    def __init__(self, recording: ModelRecording, reference: str, model: LanguageModel) -> None:
        super().__init__(lambda request: recording.answer(reference, request))
        self.name = model.name
        self._model = model

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._model.cost(usage, at)


class _RecordedModel:
    """A model whose exchanges are kept.

    Args:
        reference: Its name in definitions.
        model: The model.
        kept: Where they are kept.
        clean: Removes secrets.
    """

    def __init__(
        self,
        reference: str,
        model: LanguageModel,
        kept: list[JsonObject],
        clean: Callable[[JsonObject], JsonObject],
    ) -> None:
        self.name = model.name
        self._reference = reference
        self._model = model
        self._kept = kept
        self._clean = clean

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        with self._keeping_failure(request):
            response = await self._model.request(request)
        self._keep(request, {"response": response_as_json(response)})
        return response

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        with self._keeping_failure(request):
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        self._keep(request, {"response": response_as_json(event.response)})
                    yield event

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._model.cost(usage, at)

    @contextmanager
    def _keeping_failure(self, request: Request) -> Generator[None]:
        try:
            yield
        except ModelError as error:
            told: Mapping[str, Any] = {"kind": error.kind, "message": str(error), "status": error.status}
            self._keep(request, {"error": told})
            raise

    def _keep(self, request: Request, outcome: JsonObject) -> None:
        asked = self._clean(_readable(self._reference, request))
        self._kept.append({"hash": content_hash(asked), "request": asked, **self._clean(outcome)})

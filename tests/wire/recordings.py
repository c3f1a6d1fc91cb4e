"""Recorded exchanges with model providers: where they are, and how one is read. No assertions here.

The corpus (VCR cassettes from other projects, with their licences beside them) lives outside the repository; where it
is absent, the hand-written files in `fixtures` stand in, so that the suite always runs. `TOOLCRIB_RECORDINGS` names
further folders to read, apart by `:`.
"""

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import yaml

from toolcrib.llm import AnthropicWire, ChatWire, GeminiWire, ResponsesWire, Wire

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "shared" / "data" / "cassettes"
FIXTURES = HERE / "fixtures"

WIRES: Mapping[str, Callable[[str], Wire]] = {
    "anthropic": AnthropicWire,
    "chat": ChatWire,
    "gemini": GeminiWire,
    "responses": ResponsesWire,
}
_PATHS: Mapping[str, re.Pattern[str]] = {
    "anthropic": re.compile(r"/v1/messages$|/model/[^/]*anthropic\.claude-(?!v|i)[^/]*/invoke$"),
    "chat": re.compile(r"/chat/completions$"),
    "gemini": re.compile(r":(g|streamG)enerateContent$"),
    "responses": re.compile(r"/responses$"),
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer."""

    id: str
    api: str
    host: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def streams(self) -> bool:
        return not self.body.lstrip().startswith(b"{")

    @property
    def wire(self) -> Wire:
        return WIRES[self.api](self.host)

    @property
    def fails(self) -> bool:
        """Whether the answer is an error in spite of its status."""
        documents = self.events if self.streams else [json.loads(self.body)]
        choices: list[dict[str, Any]] = [choice for document in documents for choice in document.get("choices") or ()]
        found = (*documents, *choices, *(document.get("promptFeedback") or {} for document in documents))
        return any(it.get("error") or it.get("blockReason") for it in found)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The payloads of a stream, read line by line."""
        payloads = [line.removeprefix(b"data:").strip() for line in self.body.splitlines() if line.startswith(b"data:")]
        return [json.loads(payload) for payload in payloads if payload != b"[DONE]"]


def exchanges() -> list[Exchange]:
    """All exchanges with the APIs that we speak, of the corpus and of our own files."""
    further = [Path(name) for name in os.environ.get("TOOLCRIB_RECORDINGS", "").split(":") if name]
    folders = [folder for folder in (CORPUS, FIXTURES, *further) if folder.is_dir()]
    return [exchange for folder in folders for path in sorted(folder.glob("*.yaml")) for exchange in _read(path)]


def _read(path: Path) -> Iterator[Exchange]:
    with path.open(encoding="utf-8") as stream:
        content = yaml.load(stream, Loader=yaml.CSafeLoader)
    for number, entry in enumerate(content.get("interactions") or []):
        if "uri" not in entry.get("request", {}):
            continue
        url = urlsplit(str(entry["request"]["uri"]))
        api = next((name for name, pattern in _PATHS.items() if pattern.search(url.path)), None)
        if api is None or entry["request"]["method"] != "POST":
            continue
        response = entry["response"]
        body = _body(response)
        if not body or body.lstrip().startswith(b"["):
            continue  # No answer was kept, or it is in Gemini's other way of streaming, which we never ask for.
        yield Exchange(
            id=f"{path.stem[:90]}#{number}",
            api=api,
            host=url.hostname or "",
            request=json.loads(_body(entry["request"]) or b"{}"),
            status=response["status"]["code"],
            headers={name.lower(): values[0] for name, values in response.get("headers", {}).items()},
            body=body,
        )


def _body(message: dict[str, Any]) -> bytes:
    """The content: parsed by the recorder, or a text, or a mapping that holds one."""
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"]).encode()
    body: Any = message.get("body") or b""
    if isinstance(body, dict):
        body = cast("dict[str, Any]", body).get("string") or b""
    content: bytes = body if isinstance(body, bytes) else body.encode()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content

"""Recorded exchanges with model providers: where they are, and how one is read. No assertions here.

The corpus (VCR cassettes from other projects, with their licences beside them) lives outside the repository; where it
is absent, the hand-written files in `fixtures` stand in, so that the suite always runs.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import yaml

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "shared" / "data" / "cassettes"
FIXTURES = HERE / "fixtures"

Api: TypeAlias = Literal["chat", "anthropic"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer."""

    id: str
    api: Api
    host: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def streams(self) -> bool:
        return not self.body.lstrip().startswith(b"{")


def exchanges() -> list[Exchange]:
    """All exchanges with the APIs that we speak, of the corpus and of our own files."""
    folders = [folder for folder in (CORPUS, FIXTURES) if folder.is_dir()]
    return [exchange for folder in folders for path in sorted(folder.glob("*.yaml")) for exchange in _read(path)]


def _read(path: Path) -> Iterator[Exchange]:
    with path.open(encoding="utf-8") as stream:
        content = yaml.load(stream, Loader=yaml.CSafeLoader)
    for number, entry in enumerate(content["interactions"]):
        url = urlsplit(str(entry["request"]["uri"]))
        api = _api(url.path)
        if api is None or entry["request"]["method"] != "POST":
            continue
        response = entry["response"]
        yield Exchange(
            id=f"{path.stem[:90]}#{number}",
            api=api,
            host=url.hostname or "",
            request=json.loads(_body(entry["request"])),
            status=response["status"]["code"],
            headers={name.lower(): values[0] for name, values in response.get("headers", {}).items()},
            body=_body(response),
        )


def _api(path: str) -> Api | None:
    if path.endswith("/chat/completions"):
        return "chat"
    return "anthropic" if path.endswith("/v1/messages") else None


def _body(message: dict[str, Any]) -> bytes:
    """The content: parsed by the recorder, or a text, or a mapping that holds one."""
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"]).encode()
    body: Any = message.get("body") or b""
    if isinstance(body, dict):
        body = cast("dict[str, Any]", body).get("string") or b""
    content: bytes = body if isinstance(body, bytes) else body.encode()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content

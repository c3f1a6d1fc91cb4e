"""The page about models says what the catalogue says."""

from pathlib import Path
from typing import get_args

import pytest

from toolcrib.contracts import MODEL_ERROR_KINDS, LLMConfig
from toolcrib.llm import PROVIDERS, Provider, resolve
from toolcrib.llm.base.quirks import StructuredMode

pytestmark = pytest.mark.requirement("llm.documented")

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
ROWS = {
    cells[1].strip(" `"): [cell.strip() for cell in cells[2:5]]
    for cells in (line.split("|") for line in PAGE.splitlines() if line.startswith("| `"))
}
APIS = {
    "AnthropicWire": "Anthropic Messages",
    "ChatWire": "Chat Completions",
    "GeminiWire": "Gemini generateContent",
    "ResponsesWire": "OpenAI Responses",
}
DIRECT = {name: provider for name, provider in PROVIDERS.items() if provider.sign_in is None}


@pytest.mark.parametrize(("name", "provider"), DIRECT.items(), ids=list(DIRECT))
def test_every_provider_that_needs_no_sdk_is_listed_with_its_api_and_key(name: str, provider: Provider):
    api, key, address = ROWS[name]

    assert api == APIS[type(resolve(f"{name}:m", base_url="http://x").wire).__name__]
    assert f"`{provider.api_key_env}`" in key if provider.api_key_env else key == "none"
    assert provider.base_url is None or address in str(provider.base_url)


def test_every_setting_mode_and_kind_of_error_is_named():
    named = {*LLMConfig.model_fields, *get_args(StructuredMode), *MODEL_ERROR_KINDS}

    assert [name for name in sorted(named) if f"`{name}`" not in PAGE] == []

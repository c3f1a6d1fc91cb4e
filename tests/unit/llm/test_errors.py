"""What provider errors become before anyone sees them, and how light the package is."""

import subprocess
import sys

import pytest

import toolcrib.llm
from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.errors import MAX_MESSAGE, redact_error

KEY = "sk-secret"


@pytest.mark.requirement("llm.hostile_servers")
def test_a_key_is_replaced_before_a_long_message_is_cut():
    filler = "x" * (MAX_MESSAGE - 4)
    error = ModelError("auth", filler + KEY, status=401, retry_after_s=2.0, provider_code=KEY, request_id=f"r-{KEY}")

    clean = redact_error(error, KEY)

    assert str(clean) == f"{filler}[api... ({MAX_MESSAGE + 5} characters)"
    assert (clean.kind, clean.status, clean.retry_after_s) == ("auth", 401, 2.0)
    assert (clean.provider_code, clean.request_id) == ("[api key]", "r-[api key]")


@pytest.mark.requirement("llm.hostile_servers")
def test_without_a_key_an_error_stays_as_it_is():
    clean = redact_error(ModelError("server", "boom"), None)

    assert (str(clean), clean.provider_code) == ("boom", None)


@pytest.mark.requirement("llm.light_import")
def test_importing_the_package_loads_neither_the_http_client_nor_the_price_data_nor_an_sdk():
    heavy = {"aiohttp", "anthropic", "azure.identity", "botocore", "genai_prices", "google.auth", "httpx2", "openai"}
    code = f"import sys, toolcrib.llm; print(sorted({heavy!r} & set(sys.modules)))"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"


@pytest.mark.requirement("llm.light_import")
def test_the_public_names_exist():
    assert [name for name in toolcrib.llm.__all__ if not hasattr(toolcrib.llm, name)] == []

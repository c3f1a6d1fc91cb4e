from collections.abc import Callable

import pytest

from toolcrib.contracts import InvalidSettings, LLMConfig
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.secrets import EnvironmentSecrets
from toolcrib.llm import ModelPool, Prices, ScriptedModel
from toolcrib.llm.models.pool import MOST_OPENED

pytestmark = pytest.mark.requirement("llm.model_references")

LOCAL = "http://127.0.0.1:9999/v1"


def pool(is_released: Callable[[str, str | None, str], bool] = lambda name, realm, host: False) -> ModelPool:
    scripted = ScriptedModel(["hello"], name="given")
    return ModelPool(
        HttpSession(), given={scripted.name: scripted}, environment={}, is_released=is_released, prices=Prices()
    )


def test_the_same_configuration_has_the_same_model() -> None:
    models = pool(lambda name, realm, host: name == "MINE")
    config = LLMConfig(model="openai:gpt-4o")
    assert models.model(config) is models.model(config.model_copy())
    assert models.model(config) is not models.model(LLMConfig(model="openai:gpt-4o", api_key_env="MINE"))
    assert models.model(config) is not models.model(LLMConfig(model="openai:gpt-4o", tool_calling="schema"))


def test_of_ever_new_configurations_only_the_latest_are_kept() -> None:
    models = pool()
    first, second = (LLMConfig(model=f"openai:{name}") for name in ("first", "second"))
    kept = models.model(first), models.model(second)
    for number in range(MOST_OPENED - 1):
        models.model(LLMConfig(model=f"openai:model-{number}"))

    assert models.model(second) is kept[1]
    assert models.model(first) is not kept[0]


def test_a_given_model_is_used_and_never_looked_up() -> None:
    models = pool()
    models.check(LLMConfig(model="scripted:given"), "default")
    assert models.model(LLMConfig(model="scripted:given")).name == "scripted:given"


@pytest.mark.parametrize(
    "config",
    [
        LLMConfig(model="openai:gpt-4o", api_key_env="DATABASE_URL"),
        LLMConfig(model="openai:gpt-4o", base_url="https://collector.example.com/v1"),
    ],
)
def test_a_key_that_is_not_released_is_sent_nowhere(config: LLMConfig) -> None:
    with pytest.raises(InvalidSettings, match="not released"):
        pool().check(config, "default")
    with pytest.raises(InvalidSettings, match="not released"):
        pool().model(config)


@pytest.mark.requirement("secrets.released_where")
def test_a_key_is_released_to_the_definitions_of_a_realm_for_a_host() -> None:
    variables = EnvironmentSecrets({"KEY": "value"}, ("KEY@sales:models.example.com",))
    models = pool(variables.is_released_for_model)
    theirs = LLMConfig(model="openai:gpt-4o", api_key_env="KEY", base_url="https://models.example.com/v1")
    models.check(theirs, "sales")
    assert models.model(theirs).name == "openai:gpt-4o"
    with pytest.raises(InvalidSettings, match=r"the variable 'KEY' to 'models\.example\.com', and it is not released"):
        models.check(theirs, "rivals")
    with pytest.raises(InvalidSettings, match=r"the variable 'KEY' to 'collector\.example\.com'"):
        models.check(theirs.model_copy(update={"base_url": "https://collector.example.com/v1"}), "sales")


async def test_an_address_named_in_code_may_use_the_providers_own_key() -> None:
    models = pool()
    models.trust(LOCAL)
    models.check(LLMConfig(model="openai:gpt-4o", base_url=LOCAL), "default")
    assert models.model(LLMConfig(model="openai:gpt-4o", base_url=LOCAL)).name == "openai:gpt-4o"
    await models.close()


async def test_a_cloud_is_never_signed_in_to_at_an_address_that_a_definition_names() -> None:
    models = pool(lambda name, realm, host: True)
    config = LLMConfig(model="bedrock-anthropic:m", base_url="https://collector.example.com")
    with pytest.raises(InvalidSettings, match=r"would sign in at 'https://collector\.example\.com'"):
        models.check(config, "default")
    with pytest.raises(InvalidSettings, match=r"would sign in at 'https://collector\.example\.com'"):
        models.model(config)

    models.trust("https://collector.example.com")
    assert models.model(config).name == "bedrock-anthropic:m"
    await models.close()

"""Reading the settings: who is asked first, what is refused, what is shown."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from toolcrib.contracts import InvalidSettings, Limits
from toolcrib.crib.settings import Settings, load_settings, setting_keys, value_of, variable_of
from toolcrib.infrastructure.net import EgressPolicy


def write(folder: Path, text: str) -> Path:
    file = folder / "toolcrib.toml"
    file.write_text(text, encoding="utf-8")
    return file


def load(folder: Path, given: dict[str, Any] | None = None, **environment: str) -> Settings:
    return load_settings(given, environment=environment, folder=folder).settings


@pytest.mark.requirement("settings.precedence")
def test_without_anything_everything_is_the_default(tmp_path: Path) -> None:
    loaded = load_settings(environment={"PATH": "/bin"}, folder=tmp_path)
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.file is None
    assert loaded.settings.egress.policy() == EgressPolicy()
    assert loaded.settings.limits == Limits()
    assert loaded.settings.llm() is None


@pytest.mark.requirement("settings.precedence")
def test_argument_environment_file_and_default_are_asked_in_this_order(tmp_path: Path) -> None:
    file = write(
        tmp_path, "store = 'a'\nmodel = 'a:a'\nlease_s = 7\n[limits]\nmax_iterations = 3\n[server]\nport = 1\n"
    )
    environment = {"TOOLCRIB_STORE": "b", "TOOLCRIB_MODEL": "b:b", "TOOLCRIB_SERVER_PORT": "2"}
    loaded = load_settings(
        {"store": "c", "server.port": None, "server.host": "::1"}, environment=environment, folder=tmp_path
    )

    settings, origins = loaded.settings, loaded.origins
    assert (settings.store, origins["store"]) == ("c", "argument")
    assert (settings.model, origins["model"]) == ("b:b", "environment")
    assert (settings.server.port, origins["server.port"]) == (2, "environment")
    assert (settings.server.host, origins["server.host"]) == ("::1", "argument")
    assert (settings.lease_s, origins["lease_s"]) == (7.0, "file")
    assert (settings.limits.max_iterations, origins["limits.max_iterations"]) == (3, "file")
    assert (settings.limits.max_tool_calls, origins["limits.max_tool_calls"]) == (25, "default")
    assert loaded.file == file


@pytest.mark.requirement("settings.precedence")
def test_variables_are_texts_lists_numbers_or_nothing(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        TOOLCRIB_RELEASED_ENV="CRM_*, MAIL_TOKEN,",
        TOOLCRIB_EGRESS_ALLOW="[::1]:8080",
        TOOLCRIB_EGRESS_PORTS="443",
        TOOLCRIB_LEASE_S="30",
        TOOLCRIB_LIMITS_MAX_COST_USD="",
        TOOLCRIB_MODEL="ollama:qwen3",
        TOOLCRIB_BASE_URL="",
        TOOLCRIB_MODELS_DIR="/models",
    )
    assert settings.released_env == ("CRM_*", "MAIL_TOKEN")
    assert (settings.egress.allow, settings.egress.ports) == (("[::1]:8080",), (443,))
    assert (settings.lease_s, settings.limits.max_cost_usd, settings.base_url) == (30.0, None, None)
    assert settings.models_dir == Path("/models")
    llm = settings.llm()
    assert llm is not None
    assert (llm.model, llm.base_url) == ("ollama:qwen3", None)
    assert load(tmp_path, TOOLCRIB_RELEASED_ENV="").released_env == ()
    assert load(tmp_path, TOOLCRIB_LIMITS_MAX_COST_USD="2.5").limits.max_cost_usd == Decimal("2.5")


@pytest.mark.requirement("settings.precedence")
def test_another_file_can_be_named_and_must_then_exist(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("store = 'memory://'")
    assert load(tmp_path, TOOLCRIB_CONFIG="mine.toml").store == "memory://"
    assert load(tmp_path / "elsewhere", TOOLCRIB_CONFIG=str(tmp_path / "mine.toml")).store == "memory://"
    with pytest.raises(InvalidSettings, match=r"the settings in .*gone\.toml cannot be read: No such file"):
        load(tmp_path, TOOLCRIB_CONFIG="gone.toml")


@pytest.mark.requirement("settings.malformed")
def test_a_file_that_is_no_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    write(tmp_path, "store = 'a'\nlease_s = soon\n")
    with pytest.raises(InvalidSettings, match=r"toolcrib\.toml are not TOML: .*line 2"):
        load(tmp_path)


@pytest.mark.requirement("settings.unknown")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stroe = 'x'", "there is no setting 'stroe'; did you mean 'store'?"),
        ("[egress]\nalow = []", "there is no setting 'egress.alow'; did you mean 'egress.allow'?"),
        ("zzz = 1", "there is no setting 'zzz'; `toolcrib settings` lists all"),
        ("store.url = 'x'", "there is no setting 'store.url'"),
        ("limits = 5", "there is no setting 'limits'"),
    ],
)
def test_an_unknown_key_is_refused_with_the_closest_one(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(InvalidSettings) as refusal:
        load(tmp_path)
    assert str(refusal.value).startswith(f"{file}: {message}")


@pytest.mark.requirement("settings.unknown")
def test_an_unknown_variable_is_refused_with_the_closest_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        load(tmp_path, TOOLCRIB_EGRES_ALLOW="x", TOOLCRIB_LEASE="3")
    assert str(refusal.value) == (
        "no setting has the variable 'TOOLCRIB_EGRES_ALLOW'; did you mean 'TOOLCRIB_EGRESS_ALLOW'?; "
        "no setting has the variable 'TOOLCRIB_LEASE'; did you mean 'TOOLCRIB_LEASE_S'?"
    )


@pytest.mark.requirement("settings.unknown")
def test_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSettings, match=r"arguments: there is no setting 'sever\.port'; did you mean 'server\.port'"
    ):
        load(tmp_path, {"sever.port": 1})


@pytest.mark.requirement("settings.unknown", "settings.no_secrets")
def test_variables_of_secrets_and_of_tests_are_no_settings_and_no_error(tmp_path: Path) -> None:
    assert load(tmp_path, TOOLCRIB_PEPPER="p" * 32, TOOLCRIB_SECRET_CRM="s", TOOLCRIB_RECORDINGS="/x") == Settings()
    assert load(tmp_path, TOOLCRIB_RELEASED_ENV="TOOLCRIB_CRM_*", TOOLCRIB_CRM_TOKEN="t")
    with pytest.raises(InvalidSettings, match="'TOOLCRIB_CRM_TOKEN'"):
        load(tmp_path, TOOLCRIB_RELEASED_ENV="*", TOOLCRIB_CRM_TOKEN="t")


@pytest.mark.requirement("settings.malformed")
@pytest.mark.parametrize("lease", ["", "soon", "0", "nan", "1e9"])
def test_a_malformed_lease_is_refused_without_repeating_it(tmp_path: Path, lease: str) -> None:
    with pytest.raises(InvalidSettings, match=r"^TOOLCRIB_LEASE_S: Input should be [^;]*$"):
        load(tmp_path, TOOLCRIB_LEASE_S=lease)


@pytest.mark.requirement("settings.malformed")
def test_each_malformed_value_is_told_with_the_place_where_it_was_set(tmp_path: Path) -> None:
    file = write(tmp_path, "[egress]\nports = ['https']\n[limits]\nmax_iterations = 0\n")
    with pytest.raises(InvalidSettings) as refusal:
        load(tmp_path, {"server.port": -1}, TOOLCRIB_EGRESS_ALLOW="127.0.0.1:1, localhost")
    problems = sorted(str(refusal.value).split("; "))
    assert any(
        problem.startswith("TOOLCRIB_EGRESS_ALLOW: egress entry 'localhost' needs a port") for problem in problems
    )
    assert any(problem.startswith(f"{file}: egress.ports: Input should be a valid integer") for problem in problems)
    assert f"{file}: limits.max_iterations: Input should be greater than or equal to 1" in problems
    assert "setting server.port: Input should be greater than or equal to 0" in problems


@pytest.mark.requirement("settings.malformed")
def test_a_text_in_place_of_a_list_is_told_in_words_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, 'egress.allow = "127.0.0.1:80"')
    with pytest.raises(InvalidSettings, match=r"egress\.allow: Input should be a list$"):
        load(tmp_path)


@pytest.mark.requirement("settings.no_secrets")
def test_what_stands_before_a_host_is_masked_where_a_value_is_shown() -> None:
    settings = Settings(store="postgresql://crib:swordfish@db/crib", base_url="http://u:p@[::1]:8000/v1?q=a@b")
    assert value_of(settings, "store") == "postgresql://***@db/crib"
    assert value_of(settings, "base_url") == "http://***@[::1]:8000/v1?q=a@b"
    assert value_of(settings, "egress.ports") == [443, 80]
    assert value_of(settings, "limits.max_cost_usd") == 1.0
    assert "swordfish" not in repr(settings)
    assert "u:p" not in repr(settings)


@pytest.mark.requirement("settings.precedence")
def test_every_setting_has_a_variable_of_its_own() -> None:
    variables = [variable_of(key) for key in setting_keys()]
    assert len(variables) == len(set(variables)) > 15
    assert {"TOOLCRIB_STORE", "TOOLCRIB_EGRESS_ALLOW", "TOOLCRIB_LIMITS_MAX_ITERATIONS"} <= set(variables)

"""The configuration that is printed, and the server that it starts."""

import tomllib
from pathlib import Path

import pytest

from tests.servers.restate import running_restate
from tests.unit.cli.command import toolcrib
from toolcrib.contracts import InvalidSettings
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.engines.restate.options import server_config
from toolcrib.crib.settings import load_settings

pytestmark = pytest.mark.requirement("restate.config")


def test_the_command_prints_what_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    printed = toolcrib(
        "restate",
        "config",
        "--data",
        'a "folder"',
        TOOLCRIB_RESTATE_INGRESS_URL="http://127.0.0.1:18080",
        TOOLCRIB_RESTATE_ADMIN_URL="http://127.0.0.1:19070",
        TOOLCRIB_RESTATE_MAX_RETRY_S="7.5",
    )
    config = tomllib.loads(printed.stdout)
    assert config["base-dir"] == str(tmp_path / 'a "folder"')
    assert (config["ingress"]["bind-port"], config["admin"]["bind-port"]) == (18080, 19070)
    assert config["default-retry-policy"]["max-interval"] == "7500ms"


def test_it_stays_on_loopback_reports_nothing_and_never_gives_a_run_up():
    config = tomllib.loads(server_config(RestateOptions(), Path("/data")))
    assert (config["bind-ip"], config["advertised-host"], config["disable-telemetry"]) == (
        "127.0.0.1",
        "127.0.0.1",
        True,
    )
    assert config["default-retry-policy"]["max-attempts"] == "unlimited"
    assert config["worker"]["invoker"]["concurrent-invocations-limit"] == 100


@pytest.mark.slow
def test_a_server_starts_with_it_and_listens_where_it_says():
    with running_restate() as server:
        assert server.ask("GET", "/health") is None
        assert server.workers == []
        assert "telemetry" not in server.log.lower()


@pytest.mark.requirement("restate.optional")
@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("TOOLCRIB_ENGINE", "dbos", "'local' or 'restate'"),
        ("TOOLCRIB_RESTATE_IDENTITY_KEYS", "publickeyv1_no", "is not a public key of Restate"),
        ("TOOLCRIB_RESTATE_ABORT_S", "0", "greater than or equal to 1"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(variable: str, value: str, complaint: str):
    with pytest.raises(InvalidSettings, match=complaint):
        load_settings(environment={variable: value})

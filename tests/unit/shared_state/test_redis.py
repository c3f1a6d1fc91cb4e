"""The Redis server: its URL, its failures, and what is said of them."""

import logging
import re

import pytest

from tests.servers.redis import PASSWORD, RedisTestServer, running_redis
from tests.twins import ManualClock
from toolcrib.contracts import InvalidSettings, Unavailable
from toolcrib.crib.settings import Settings, load_settings, value_of
from toolcrib.infrastructure.redis import RedisServer, Script


@pytest.mark.requirement("shared_state.redis_urls")
@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache.example.com", "cache.example.com:6379/0"),
        ("redis://ann:swordfish@10.0.0.7:7000/3", "10.0.0.7:7000/3"),
        ("rediss://:swordfish@cache.example.com/1?ssl_ca_certs=/etc/ca.pem", "cache.example.com:6379/1"),
    ],
)
def test_a_url_names_the_server(url: str, address: str) -> None:
    assert RedisServer(url).address == address


@pytest.mark.requirement("shared_state.redis_urls")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "must be redis://host:port/database"),
        ("http://cache.example.com", "must be redis://host:port/database"),
        ("redis://", "must be redis://host:port/database"),
        ("redis://:swordfish@host:99999", "is not a port"),
        ("redis://:swordfish@[::1", "is not an address"),
        ("redis://:swordfish@host/first", "must be a number"),
        ("redis://host?password=swordfish", "parameter 'password'; it may have ssl_ca_certs"),
        ("rediss://host?ssl_cert_reqs=none", "parameter 'ssl_cert_reqs'"),
    ],
)
def test_another_url_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(InvalidSettings, match=re.escape(why)) as refused:
        RedisServer(url)
    assert "swordfish" not in str(refused.value)
    with pytest.raises(InvalidSettings, match=re.escape(why)) as unset:
        load_settings({"redis": url}, environment={})
    assert "swordfish" not in str(unset.value)


@pytest.mark.requirement("shared_state.redis_urls")
def test_the_password_of_a_setting_is_not_shown() -> None:
    settings = Settings(redis="redis://:swordfish@host/1")
    assert "swordfish" not in repr(settings)
    assert value_of(settings, "redis") == "redis://***@host/1"


@pytest.mark.requirement("shared_state.redis_urls")
def test_without_the_client_a_url_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        del name

    monkeypatch.setattr("importlib.util.find_spec", missing)
    with pytest.raises(InvalidSettings, match=r"pip install 'toolcrib\[redis\]'"):
        RedisServer("redis://host")


@pytest.mark.requirement("shared_state.redis_away")
@pytest.mark.parametrize(
    ("command", "why"),
    [(("NONSENSE", "swordfish"), r"refuses: ERR|refuses \("), (("GET", "a list"), "refuses: WRONGTYPE")],
)
async def test_a_refusal_is_told_by_its_name_and_nothing_of_the_command(
    server: RedisServer, command: tuple[str, ...], why: str
) -> None:
    await server.ask("RPUSH", "a list", "swordfish")
    with pytest.raises(Unavailable, match=why) as refused:
        await server.ask(*command)
    assert "swordfish" not in str(refused.value)


@pytest.mark.requirement("shared_state.redis_away")
async def test_a_wrong_password_is_told_and_not_shown(running: RedisTestServer) -> None:
    server = RedisServer(running.url(password="swordfish-of-others"))
    with pytest.raises(Unavailable, match=r"refuses the user or the password; check") as refused:
        await server.ask("GET", "x")
    assert "swordfish" not in str(refused.value)
    await server.close()


@pytest.mark.requirement("shared_state.redis_away")
async def test_a_script_is_sent_again_to_a_server_that_has_forgotten_it(server: RedisServer) -> None:
    script = Script.of("return ARGV[1]")
    assert await server.run(script, (), ("a",)) == b"a"
    await server.ask("SCRIPT", "FLUSH")
    assert await server.run(script, (), ("b",)) == b"b"


@pytest.mark.requirement("shared_state.redis_away")
async def test_a_server_that_is_away_is_warned_of_once_and_asked_once_a_second_until_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    with running_redis() as running:
        server = RedisServer(running.url(), monotonic=clock.monotonic)
        assert await server.ask("SET", "x", "1")
        running.stop()
        for _ in range(3):
            with pytest.raises(Unavailable, match=rf"Redis at 127.0.0.1:{running.port}/0 does not answer \(Conn"):
                await server.ask("GET", "x")
            with pytest.raises(Unavailable, match="has failed a moment ago"):
                await server.ask("GET", "x")
            clock.advance(1.5)
        running.start()
        assert await server.ask("GET", "x") is None
        await server.close()

    said = [record.getMessage() for record in caplog.records if record.name == "toolcrib.infrastructure.redis"]
    assert [record.levelno for record in caplog.records if record.name == "toolcrib.infrastructure.redis"] == [
        logging.WARNING,
        logging.WARNING,
    ]
    assert said[0].startswith(f"Redis at 127.0.0.1:{running.port}/0 does not answer (ConnectionError); check")
    assert said[1] == f"Redis at 127.0.0.1:{running.port}/0 answers again"
    assert PASSWORD not in caplog.text

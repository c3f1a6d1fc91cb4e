"""The operator's settings: from arguments, the environment, `toolcrib.toml`, or defaults, in this order of precedence.

    loaded = load_settings(given={"store": "memory://"})
    loaded.settings.egress.allow, loaded.origins["egress.allow"]

Each setting has a key (`egress.allow`) and a variable (`TOOLCRIB_EGRESS_ALLOW`). An unknown key is refused, with the
closest name. No setting contains a secret: secrets are separate variables, which definitions refer to by name.

Only choices of the operator are settings; choices of an author are in the definitions.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_origin

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from toolcrib.contracts import Contract, InvalidSettings, Isolation, Json, Limits, LLMConfig
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.policy import read_caps
from toolcrib.core.providers import is_protected
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.infrastructure.redis import RedisServer
from toolcrib.infrastructure.sandbox import Sandbox, machine_sandbox
from toolcrib.infrastructure.secrets import OWN_VARIABLES, VariableRelease
from toolcrib.infrastructure.store.blobs.files import open_objects
from toolcrib.kinds.mcp.importer import AllowedPrograms

PREFIX: Final = "TOOLCRIB_"
FILE: Final = "toolcrib.toml"
FILE_VARIABLE: Final = "TOOLCRIB_CONFIG"
"""Names another file than `toolcrib.toml` in the working directory; that one must exist."""

SECRETS: Final = OWN_VARIABLES
"""Variables that hold secrets of the product itself. They are read where they are used, and never shown."""

_RELEASABLE: Final = "TOOLCRIB_SECRET_*"
_TESTS: Final = "TOOLCRIB_RECORDINGS"
"""Tells our own tests of more recordings; they may run commands with it set."""
_USER_INFO: Final = re.compile(r"(?<=://)[^/?#]*@")

SigningAlgorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Algorithms with a public key; with a shared one, who checks a token could make one."""
Origin: TypeAlias = Literal["argument", "environment", "file", "default"]
"""Where a value comes from."""


class EgressSettings(Contract):
    """Which addresses tools, imports and models reach: `EgressPolicy` says what the forms mean."""

    allow: tuple[str, ...] = ()
    """Exceptions for local addresses: `127.0.0.1:8123`, `10.2.0.0/16:443`."""
    hosts: tuple[str, ...] = ("*",)
    """Host names that requests may have."""
    ports: tuple[int, ...] = (443, 80)
    max_redirects: int = Field(default=3, ge=0)
    max_bytes: int = Field(default=10 * 2**20, ge=1)
    """The largest body of an answer."""

    @field_validator("allow", "hosts", "ports")
    @classmethod
    def _are_well_formed(cls, value: Any, info: ValidationInfo) -> Any:
        try:
            EgressPolicy(**{str(info.field_name): value})
        except InvalidSettings as problem:
            raise ValueError(str(problem)) from None
        return value

    def policy(self) -> EgressPolicy:
        """The policy that these settings say."""
        return EgressPolicy(**self.model_dump())


class ServerSettings(Contract):
    """Where `toolcrib up` listens."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8700, ge=0, le=65535)
    """0 takes any free one."""
    allow_local_models: bool = False
    """Whether definitions over HTTP may name models on local addresses, such as `ollama:…`."""
    self_approval: bool = False
    """Whether who has started a run, or acts in it, may decide on its calls that wait for a person."""
    drain_s: float = Field(default=5.0, ge=0, le=3600)
    """Seconds for active calls to end when the process is stopped."""


class AuthorizationSettings(Contract):
    """The authorization server whose access tokens MCP clients may use besides API keys."""

    issuer: str | None = None
    """Its issuer, as its tokens and its document name it; no access tokens are taken if null."""
    audience: str | None = Field(default=None, validate_default=True)
    """This server as the tokens name it: the public address of `/mcp`."""
    jwks_url: str | None = None
    """Where its signing keys are; what its document names if null."""
    algorithms: tuple[SigningAlgorithm, ...] = ("RS256", "ES256", "PS256", "EdDSA")
    """Those that tokens may be signed with."""
    scopes: tuple[str, ...] = ()
    """What scopes grant: the scope and patterns of security URIs, such as `crm.read ai://tools/crm/*/execute`."""
    realm: str = Field(default="default", min_length=1, max_length=100)
    """Where those who come with its tokens are."""
    leeway_s: float = Field(default=30.0, ge=0, le=120)
    """Seconds by which its clock may differ from ours."""

    @field_validator("issuer", "audience", "jwks_url")
    @classmethod
    def _are_protected(cls, url: str | None) -> str | None:
        if url is not None and not is_protected(url):
            msg = f"{url[:200]!r} is not https, nor http on this machine"
            raise ValueError(msg)
        return url

    @field_validator("scopes")
    @classmethod
    def _grant_something(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        for line in lines:
            grants = line.split()[1:]
            if not grants or not all(grant.startswith("ai://") for grant in grants):
                msg = f"{line[:200]!r} grants nothing; write a scope and patterns: 'crm.read ai://tools/crm/*/execute'"
                raise ValueError(msg)
        return lines

    @field_validator("audience")
    @classmethod
    def _is_named(cls, audience: str | None, info: ValidationInfo) -> str | None:
        if audience is None and info.data.get("issuer") is not None:
            msg = "an issuer is set, and not for whom its tokens are; set audience to the public address of /mcp"
            raise ValueError(msg)
        return audience

    def grants_by_scope(self) -> Mapping[str, tuple[str, ...]]:
        """The patterns of security URIs that each scope grants."""
        return {line.split()[0]: tuple(line.split()[1:]) for line in self.scopes}


class RetentionSettings(Contract):
    """How long what has ended is kept."""

    runs_days: float | None = Field(default=None, gt=0)
    """Days after which ended runs and idle conversations are pruned by a serving process; for ever if null."""

    @property
    def keep(self) -> timedelta | None:
        """The same as a time."""
        return None if self.runs_days is None else timedelta(days=self.runs_days)


class SandboxSettings(Contract):
    """How code tools are run."""

    min_isolation: Isolation = "language"
    """The weakest isolation of code that is allowed, whatever a tool declares."""
    allow_unjailed: bool = False
    """Whether Monty may run where no jail can be made."""
    warm: int = Field(default=0, ge=0, le=64)
    """Jails of each kind that are kept ready."""
    places: int | None = Field(default=None, ge=1, le=1024)
    """Executions that compute at the same time; twice as many as processors if null."""

    def open(self) -> Sandbox:
        """The sandbox that these settings say."""
        return machine_sandbox(
            minimum=self.min_isolation, allow_unjailed=self.allow_unjailed, warm=self.warm, places=self.places
        )


class Settings(Contract):
    """All settings. `docs/settings.md` explains each, and why some defaults are not those of the specification."""

    store: str = Field(default="sqlite:///toolcrib.db", min_length=1, repr=False)
    """URL of the store; like `base_url`, it is left out of `repr`, because it may contain credentials."""
    blobs: str | None = Field(default=None, repr=False)
    """URL of the folder or bucket of the store's blobs; where the store has them otherwise if null."""
    redis: str | None = Field(default=None, repr=False)
    """URL of the Redis server by which processes share results, rate limits and what counts towards budgets."""
    budgets: tuple[str, ...] = ()
    """Caps on what many runs spend together, such as `realm 50 usd/day`: `toolcrib.core.policy.caps` says how."""
    model: str | None = None
    """`provider:model` for agentic tools that are defined in code without one, and for the demonstrations."""
    base_url: str | None = Field(default=None, repr=False)
    """Address of that model's server, if it is not the provider's own."""
    released_env: tuple[str, ...] = (_RELEASABLE,)
    """The variables that definitions may use as secrets, of which realm and for which hosts:
    `NAMES[@REALM][:HOST]`, each a pattern with `*`. Without a realm, those of the realm `default`; without a host,
    they may be sent to any."""
    lease_s: float = Field(default=10.0, ge=0.5, le=3600)
    """Seconds after which other processes claim the runs of a process that died."""
    worker_wait_s: float = Field(default=5.0, ge=0, le=3600)
    """Seconds that a call waits for a worker that has the tool's Python function, if this process lacks it."""
    engine: Literal["local", "restate"] = "local"
    """Who drives runs: the processes that begin them, or the workers of a Restate cluster."""
    models_dir: Path | None = None
    """Where models that run in this process are installed; the user's data directory if null."""
    limits: Limits = Limits.model_construct()
    """What a run may spend, for agentic tools that are defined in code without limits of their own."""
    mcp_commands: tuple[str, ...] = ()
    """Programs that may be started as MCP servers, word for word; `toolcrib.kinds.mcp.importer.programs` says how."""
    imports: tuple[str, ...] = ()
    """What `toolcrib up` and `toolcrib worker` import when they start, as `NAME=FORM:ADDRESS`, such as
    `shop=database:${env:SHOP_URL}`: `docs/providers.md` says how."""
    plugins: tuple[str, ...] = ()
    """Entry points of other packages that are loaded: runtimes and model providers. They run with our rights."""
    model_services: Path | None = None
    """File that describes model providers of one's own, by name: `docs/models.md` says how."""
    egress: EgressSettings = EgressSettings.model_construct()
    sandbox: SandboxSettings = SandboxSettings.model_construct()
    server: ServerSettings = ServerSettings.model_construct()
    authorization: AuthorizationSettings = AuthorizationSettings.model_construct()
    retention: RetentionSettings = RetentionSettings.model_construct()
    restate: RestateOptions = RestateOptions.model_construct()
    """Where Restate is and how it reaches a worker, if `engine` is `restate`."""

    @field_validator("blobs", "redis")
    @classmethod
    def _names_something(cls, url: str | None, info: ValidationInfo) -> str | None:
        opens = {"blobs": open_objects, "redis": RedisServer}[str(info.field_name)]
        try:
            if url is not None:
                opens(url)
        except InvalidSettings as problem:
            raise ValueError(str(problem)) from None
        return url

    @field_validator("budgets")
    @classmethod
    def _are_caps(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        try:
            read_caps(texts)
        except InvalidSettings as problem:
            raise ValueError(str(problem)) from None
        return texts

    @field_validator("mcp_commands")
    @classmethod
    def _are_commands(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        try:
            AllowedPrograms(lines)
        except InvalidSettings as problem:
            raise ValueError(str(problem)) from None
        return lines

    @field_validator("imports")
    @classmethod
    def _are_imports(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        from toolcrib.kinds.table import StartImport  # noqa: PLC0415 - loads all kinds, which few settings need

        try:
            for line in lines:
                StartImport.read(line)
        except InvalidSettings as problem:
            raise ValueError(str(problem)) from None
        return lines

    def llm(self) -> LLMConfig | None:
        """The configuration of the model, if one is set."""
        return LLMConfig(model=self.model, base_url=self.base_url) if self.model else None


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and where each comes from."""

    settings: Settings
    origins: Mapping[str, Origin]
    """By key, all of them."""
    file: Path | None
    """The file that was read; null if there is none."""


def load_settings(
    given: Mapping[str, Json] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> LoadedSettings:
    """Read the settings.

    Args:
        given: Explicit values by key; null means not given.
        environment: `os.environ` if null.
        folder: Where `toolcrib.toml` is looked for; the working directory if null.

    Raises:
        InvalidSettings: A value cannot be used, a key or variable is unknown, or the file cannot be read.
    """
    environment = os.environ if environment is None else environment
    file = _file(environment, folder or Path.cwd())
    arguments = {key: value for key, value in (given or {}).items() if value is not None}
    layers: dict[Origin, dict[str, Json]] = {
        "file": {} if file is None else _from_file(file),
        "environment": _from_environment(environment),
        "argument": _check_keys(arguments, "arguments"),
    }
    origins: dict[str, Origin] = dict.fromkeys(setting_keys(), "default")
    values: dict[str, Json] = {}
    for origin, layer in layers.items():
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    try:
        settings = Settings.model_validate(_nest_by_section(values))
    except ValidationError as problem:
        raise InvalidSettings("; ".join(_explain_problems(problem, origins, file))) from None
    _refuse_unknown_variables(environment, settings.released_env)
    return LoadedSettings(settings, origins, file)


def setting_keys() -> dict[str, FieldInfo]:
    """Every setting by its key, in the order of this module."""
    return dict(_fields(Settings, ""))


def variable_of(key: str) -> str:
    """The environment variable of a setting: `egress.allow` is `TOOLCRIB_EGRESS_ALLOW`."""
    return PREFIX + key.replace(".", "_").upper()


def value_of(settings: Settings, key: str) -> Json:
    """A setting's value as JSON; credentials in URLs are masked."""
    value: Json = settings.model_dump(mode="json")
    for name in key.split("."):
        value = value[name]
    return _USER_INFO.sub("***@", value) if isinstance(value, str) else value


def _fields(model: type[Contract], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Contract):
            yield from _fields(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _file(environment: Mapping[str, str], folder: Path) -> Path | None:
    named = environment.get(FILE_VARIABLE)
    file = folder / (named or FILE)
    if named or file.exists():
        return file
    return None


def _from_file(file: Path) -> dict[str, Json]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidSettings(f"the settings in {file} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise InvalidSettings(f"the settings in {file} are not TOML: {problem}") from problem
    return _check_keys(dict(_flatten(tables, "")), str(file))


def _flatten(table: Mapping[str, Json], prefix: str) -> Iterator[tuple[str, Json]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(cast("Mapping[str, Json]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _check_keys(values: dict[str, Json], place: str) -> dict[str, Json]:
    """The values, if every key is one.

    Raises:
        InvalidSettings: One is not.
    """
    known = setting_keys()
    problems = [_unknown(f"{place}: there is no setting", key, known) for key in values if key not in known]
    if problems:
        raise InvalidSettings("; ".join(problems))
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Json]:
    return {
        key: _from_text(field, environment[variable_of(key)])
        for key, field in setting_keys().items()
        if variable_of(key) in environment
    }


def _from_text(field: FieldInfo, text: str) -> Json:
    """A variable's value: a list is comma-separated, and an empty string is null where null is possible."""
    if get_origin(field.annotation) is tuple:
        return [entry for part in text.split(",") if (entry := part.strip())]
    return None if not text and NoneType in get_args(field.annotation) else text


def _nest_by_section(values: Mapping[str, Json]) -> dict[str, Json]:
    """Values by key as the model has them; no section is deeper than one level."""
    nested: dict[str, Json] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        target = nested.setdefault(section, {}) if section else nested
        target[name] = value
    return nested


def _explain_problems(problem: ValidationError, origins: Mapping[str, Origin], file: Path | None) -> Iterator[str]:
    """Each problem with the place where the value was set; the value itself is not repeated."""
    for found in problem.errors():
        key = next(known for known in _prefixes(found["loc"]) if known in origins)
        places = {"environment": variable_of(key), "file": f"{file}: {key}"}
        text = "Input should be a list" if found["type"] == "tuple_type" else found["msg"].removeprefix("Value error, ")
        yield f"{places.get(origins[key], f'setting {key}')}: {text}"


def _prefixes(location: tuple[int | str, ...]) -> Iterator[str]:
    """The keys that a place in the settings may belong to: a list's entry has the list's."""
    parts = [str(part) for part in location]
    yield from (".".join(parts[:length]) for length in range(len(parts), 0, -1))


def _refuse_unknown_variables(environment: Mapping[str, str], released: tuple[str, ...]) -> None:
    """Refuse a variable of ours that nothing reads, which is most likely a misspelt one.

    Raises:
        InvalidSettings: There is one.
    """
    known = {*map(variable_of, setting_keys()), *SECRETS, FILE_VARIABLE}
    names = [VariableRelease.read(text).names for text in released]
    others = [pattern for pattern in (*names, _RELEASABLE, _TESTS) if pattern.startswith(PREFIX)]
    stray = (
        name
        for name in sorted(environment)
        if name.startswith(PREFIX) and name not in known and not any(fnmatchcase(name, each) for each in others)
    )
    problems = [_unknown("no setting has the variable", name, known) for name in stray]
    if problems:
        raise InvalidSettings("; ".join(problems))


def _unknown(what: str, name: str, known: Mapping[str, object] | set[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`toolcrib settings` lists all"
    return f"{what} {name!r}; {hint}"

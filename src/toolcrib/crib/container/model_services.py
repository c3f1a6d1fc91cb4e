"""Model services that an operator has defined, as model providers, and the choice of a run's model. No I/O."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    InvalidExpression,
    InvalidSettings,
    Json,
    JsonObject,
    LLMConfig,
    ModelError,
    ModelService,
    ToolRevision,
)
from toolcrib.core.expressions import references_of, resolve
from toolcrib.core.expressions.jsonpath import check_path, select_one
from toolcrib.llm import PROVIDERS, ModelPool, Provider
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.wires import PlainForm, PlainWire

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
_SAID: Final = frozenset({"model", "system", "prompt", "messages", "schema", "temperature", "max_tokens"})


def read_services(file: Path) -> Mapping[str, ModelService]:
    """The services that a file describes: YAML or JSON, an object of `ModelService` by name.

    Raises:
        InvalidSettings: It cannot be read, or describes something else.
    """
    import yaml  # noqa: PLC0415 - heavy

    try:
        services = TypeAdapter(dict[str, ModelService])
        return services.validate_python(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    except OSError as problem:
        raise InvalidSettings(f"the model services in {file} cannot be read: {problem.strerror}") from problem
    except ValidationError as problem:
        found = problem.errors()[0]
        place = ".".join(map(str, found["loc"]))
        raise InvalidSettings(f"the model services in {file}: {place}: {found['msg']}; correct it") from None
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise InvalidSettings(f"the model services in {file} are no YAML: {problem}") from None


def service_providers(services: Mapping[str, ModelService]) -> dict[str, Provider]:
    """Model providers by name, in addition to the built-in ones.

    Raises:
        InvalidSettings: A name is taken or no name, or a template or path cannot be used.
    """
    return {name: _provider(name, service) for name, service in services.items()}


def _provider(name: str, service: ModelService) -> Provider:
    if name in PROVIDERS or not _NAME.fullmatch(name):
        problem = "is taken" if name in PROVIDERS else "has other characters than a-z, 0-9 and -"
        raise InvalidSettings(f"model service {name!r} {problem}; give it another name")
    if service.wire != "plain":
        like = PROVIDERS[service.wire]
        quirks = Quirks(tool_calling=service.tool_calling or "native") if service.wire == "openai" else like.quirks
        return Provider(
            base_url=service.base_url,
            api_key_env=service.api_key_env,
            key_required=service.api_key_env is not None,
            wire=like.wire,
            quirks=quirks,
        )
    _check(name, service)
    form = _form(name, service)
    takes_schema = "schema" in _roots(service.request)
    return Provider(
        base_url=service.base_url,
        api_key_env=service.api_key_env,
        key_required=service.api_key_env is not None,
        wire=lambda origin: PlainWire(origin, form),
        quirks=Quirks(tool_calling="schema", structured="json_schema" if takes_schema else "prompt"),
    )


def _check(name: str, service: ModelService) -> None:
    try:
        unknown = sorted(_roots(service.request) - _SAID) or sorted(_roots(dict(service.headers)) - {"key"})
        for path in filter(None, (service.text, service.input_tokens, service.output_tokens)):
            check_path(path)
    except InvalidExpression as problem:
        raise InvalidSettings(f"model service {name!r}: {problem}") from None
    if unknown:
        msg = f"model service {name!r} uses ${{{unknown[0]}}}, which is unknown; the request may use"
        raise InvalidSettings(f"{msg} {', '.join(sorted(_SAID))}, and in headers key")


def _roots(template: JsonObject) -> set[str]:
    return {reference.partition(".")[0].partition("[")[0] for reference in references_of(template)}


def _form(name: str, service: ModelService) -> PlainForm:
    def body(values: JsonObject) -> JsonObject:
        try:
            return {name: resolve(value, values) for name, value in service.request.items()}
        except InvalidExpression as problem:
            raise ModelError("bad_request", f"{name}: the request cannot be made: {problem}") from None

    def headers(key: str | None) -> dict[str, str]:
        if not service.headers:
            return {"authorization": f"Bearer {key}"} if key else {}
        return {header.lower(): str(resolve(value, {"key": key or ""})) for header, value in service.headers.items()}

    return PlainForm(
        path=service.path,
        body=body,
        headers=headers,
        text=_finder(service.text),
        tokens=lambda answer: (_finder(service.input_tokens)(answer), _finder(service.output_tokens)(answer)),
    )


def _finder(path: str | None) -> Callable[[Json], Json]:
    def find(answer: Json) -> Json:
        return None if path is None else select_one(path, answer)

    return find


def llm_of(
    tool: str,
    model: str | LLMConfig | None,
    base_url: str | None,
    *,
    default: LLMConfig | None,
    models: ModelPool,
    realm: str,
) -> LLMConfig:
    """The configuration of a tool's model; its address was named in code, so it is trusted.

    Args:
        tool: The tool's name, for the message.
        model: `provider:model`, or a whole configuration.
        base_url: Address of the model's server, beside `provider:model`.
        default: What is taken if no model is named.
        models: Checks the reference, and trusts the address of the service from then on.
        realm: Where the tool is defined.

    Raises:
        InvalidSettings: The reference is malformed, its provider unknown, or there is none.
    """
    llm = LLMConfig(model=model, base_url=base_url) if isinstance(model, str) else model or default
    if llm is None:
        msg = f"{tool!r} has no model; name one, or set TOOLCRIB_MODEL and use Crib.from_settings()"
        raise InvalidSettings(msg)
    if llm.base_url is not None:
        models.trust(llm.base_url)
    models.check(llm, realm)
    return llm


def with_model(tool: ToolRevision, model: str) -> ToolRevision:
    """The revision with another model, `provider:model`; one without a model as it is."""
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        return tool
    inside = implementation.model_copy(update={"llm": implementation.llm.asking(model)})
    return tool.model_copy(update={"definition": tool.definition.model_copy(update={"implementation": inside})})

"""Addresses of the clouds, read from the environment variables that their own tools use. No I/O.

A definition only names a model; region, project, resource and credentials are the operator's.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from toolcrib.contracts.base.errors import InvalidSettings

_VERTEX_MULTI_REGIONS = frozenset({"eu", "us"})


class SdkSettings(Struct, frozen=True, kw_only=True):
    """What an SDK's client is made from."""

    provider: str
    """The endpoint's name, for errors."""
    base_url: str
    """The address to which the wire's paths are joined."""
    environment: Mapping[str, str]
    key: Callable[[], str | None]
    """Gives the API key, if one is used; asked at each call."""


def azure_url(environment: Mapping[str, str]) -> str:
    """The OpenAI API of an Azure resource."""
    return f"{_require_variable(environment, 'AZURE_OPENAI_ENDPOINT').rstrip('/')}/openai"


def bedrock_url(environment: Mapping[str, str]) -> str:
    """The Bedrock runtime of a region."""
    return f"https://bedrock-runtime.{bedrock_region(environment)}.amazonaws.com"


def bedrock_region(environment: Mapping[str, str]) -> str:
    """The AWS region."""
    return environment.get("AWS_REGION") or _require_variable(environment, "AWS_DEFAULT_REGION", shown="AWS_REGION")


def foundry_url(environment: Mapping[str, str]) -> str:
    """The Anthropic API of a Microsoft Foundry resource."""
    return f"https://{_require_variable(environment, 'ANTHROPIC_FOUNDRY_RESOURCE')}.services.ai.azure.com/anthropic"


def vertex_url(environment: Mapping[str, str]) -> str:
    """The Vertex AI API of a location, for models whose SDK adds the project."""
    return f"https://{_vertex_host(vertex_location(environment))}/v1"


def vertex_google_url(environment: Mapping[str, str]) -> str:
    """Google's own models in a project and location of Vertex AI."""
    location = vertex_location(environment)
    return (
        f"https://{_vertex_host(location)}/v1beta1/projects/{vertex_project(environment)}"
        f"/locations/{location}/publishers/google"
    )


def vertex_project(environment: Mapping[str, str]) -> str:
    """The Google Cloud project."""
    return _require_variable(environment, "GOOGLE_CLOUD_PROJECT")


def vertex_location(environment: Mapping[str, str]) -> str:
    """The Google Cloud location; `global` unless one is named."""
    return environment.get("GOOGLE_CLOUD_LOCATION") or "global"


def _vertex_host(location: str) -> str:
    if location == "global":
        return "aiplatform.googleapis.com"
    if location in _VERTEX_MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def _require_variable(environment: Mapping[str, str], variable: str, *, shown: str = "") -> str:
    if value := environment.get(variable):
        return value
    raise InvalidSettings(f"{shown or variable} is not set; export it, or give base_url")

"""Loads extensions from other packages by entry points, if the operator has named them.

A package offers runtimes in the group `toolcrib.runtimes` (a function from `PluginHost` to a `PluginRuntime`), model
providers in `toolcrib.model_providers` (a `Provider`) and guardrails in `toolcrib.guardrails` (a `GuardrailMaker`):

    [project.entry-points."toolcrib.runtimes"]
    ledger = "acme_ledger:make_runtime"

The operator names it: `TOOLCRIB_PLUGINS=ledger`. Plugins run with the rights of this process.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeAlias

from toolcrib.contracts import InvalidDefinition, InvalidSettings
from toolcrib.core.kinds import PluginHost, PluginRuntime
from toolcrib.core.policy import GuardrailMaker
from toolcrib.core.registry import compile_schema
from toolcrib.llm import PROVIDERS, Provider

__all__ = ["NO_PLUGINS", "PluginHost", "PluginRuntime", "Plugins", "load_plugins"]

RUNTIMES: Final = "toolcrib.runtimes"
MODEL_PROVIDERS: Final = "toolcrib.model_providers"
GUARDRAILS: Final = "toolcrib.guardrails"
_GROUPS: Final = (RUNTIMES, MODEL_PROVIDERS, GUARDRAILS)

FindEntryPoints: TypeAlias = Callable[[str], Iterable[EntryPoint]]
"""The entry points of a group that are installed."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was loaded."""

    makers: Mapping[str, Callable[[PluginHost], object]] = field(
        default_factory=dict[str, Callable[[PluginHost], object]]
    )
    """The functions that make runtimes, by name."""
    model_providers: Mapping[str, Provider] = field(default_factory=dict[str, Provider])
    guardrails: Mapping[str, GuardrailMaker] = field(default_factory=dict[str, GuardrailMaker])
    """What makes checks of the parameters of custom guardrails, by name."""

    def runtimes(self, host: PluginHost) -> dict[str, PluginRuntime]:
        """Make the runtimes.

        Raises:
            InvalidSettings: What a plugin makes is no runtime.
        """
        return {name: _check_runtime(name, make(host)) for name, make in self.makers.items()}


NO_PLUGINS: Final = Plugins()


def load_plugins(names: Sequence[str], find: FindEntryPoints = lambda group: entry_points(group=group)) -> Plugins:
    """Load the entry points of these names, and no other.

    Args:
        names: Of entry points, in any group.
        find: Finds what is installed.

    Raises:
        InvalidSettings: A name is not installed, is offered twice, cannot be loaded, or is not what it should be; the
            message names the distribution.
    """
    found = {group: [point for point in find(group) if point.name in names] for group in _GROUPS}
    offered = {point.name for points in found.values() for point in points}
    missing = [name for name in names if name not in offered]
    if missing:
        msg = f"plugin {missing[0]!r} is not installed; installed are: {_plugin_names(find)}. Install its package"
        raise InvalidSettings(f"{msg}, or take it out of TOOLCRIB_PLUGINS")
    for points in found.values():
        _refuse_twice(points)
    return Plugins(
        makers={point.name: _maker(point, "runtime") for point in found[RUNTIMES]},
        model_providers={point.name: _model_provider(point) for point in found[MODEL_PROVIDERS]},
        guardrails={point.name: _maker(point, "guardrail") for point in found[GUARDRAILS]},
    )


def _plugin_names(find: FindEntryPoints) -> str:
    return ", ".join(sorted({point.name for group in _GROUPS for point in find(group)})) or "none"


def _refuse_twice(points: Sequence[EntryPoint]) -> None:
    for point in points:
        same = [_origin(other) for other in points if other.name == point.name]
        if len(same) > 1:
            raise InvalidSettings(f"plugin {point.name!r} is offered by {' and '.join(same)}; uninstall one of them")


def _maker(point: EntryPoint, what: str) -> Callable[..., Any]:
    made = _load_entry_point(point)
    if not callable(made):
        raise InvalidSettings(f"plugin {point.name!r} of {_origin(point)} is no function that makes a {what}")
    return made


def _model_provider(point: EntryPoint) -> Provider:
    provider = _load_entry_point(point)
    if not isinstance(provider, Provider):
        raise InvalidSettings(f"plugin {point.name!r} of {_origin(point)} is no toolcrib.llm.Provider")
    if point.name in PROVIDERS:
        raise InvalidSettings(
            f"plugin {point.name!r} of {_origin(point)} has the name of a provider that everybody has"
        )
    return provider


def _load_entry_point(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as problem:
        msg = f"plugin {point.name!r} of {_origin(point)} cannot be loaded: {problem}; reinstall or update it"
        raise InvalidSettings(msg) from problem


def _check_runtime(name: str, runtime: object) -> PluginRuntime:
    if not isinstance(runtime, PluginRuntime):
        raise InvalidSettings(f"plugin {name!r} made no runtime: it needs `config_schema` and `run`; update it")
    try:
        compile_schema(runtime.config_schema)
    except InvalidDefinition as problem:
        raise InvalidSettings(f"plugin {name!r}: its config_schema is not JSON Schema 2020-12: {problem}") from None
    return runtime


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"

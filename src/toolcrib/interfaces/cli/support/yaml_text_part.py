"""YAML whose values are those of JSON: `2026-01-31T12:00:00Z` is text, as it is wherever a moment is meant."""

from typing import ClassVar, Final

from yaml import SafeLoader

_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class JsonLoader(SafeLoader):
    """Reads plain YAML, except that it makes no dates."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }

"""Secrets: resolved by reference for one call, and taken out of everything that leaves it."""

from toolcrib.secrets.redaction import PLACEHOLDER, Redactor
from toolcrib.secrets.references import EnvironmentSecrets, environment_name

__all__ = ["PLACEHOLDER", "EnvironmentSecrets", "Redactor", "environment_name"]

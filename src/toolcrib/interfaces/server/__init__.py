"""The REST surface: a thin translation of HTTP to the crib. It has no way of its own to run anything."""

from toolcrib.interfaces.server.app import create_app
from toolcrib.interfaces.server.http.keys import Authenticator, KeyRing, read_pepper
from toolcrib.interfaces.server.serving import serve

__all__ = ["Authenticator", "KeyRing", "create_app", "read_pepper", "serve"]

"""The REST API: translates HTTP requests to the crib's Python API. It has no rules of its own for runs.

`app` combines the routes; each folder has the routes of a subject, `http` what every request passes, `views` the
bodies. Imported by `interfaces.cli` (`toolcrib up`) and by applications.
"""

from toolcrib.interfaces.server.app import create_app
from toolcrib.interfaces.server.http.keys import Authenticator, KeyRing, read_pepper
from toolcrib.interfaces.server.serving import serve

__all__ = ["Authenticator", "KeyRing", "create_app", "read_pepper", "serve"]

"""Client certificates and private certificate authorities: `TlsIdentity`, PEM texts as data.

`context()` returns the SSL context for HTTP and other protocols. A connection with one identity is never used for
another, and never follows a redirect to another origin.
"""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from toolcrib.contracts.base.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """Who we are to a server, and how it is known. Shows nothing of it in a representation."""

    certificate: str | None = field(default=None, repr=False)
    """PEM: ours, followed by those between it and its authority."""
    key: str | None = field(default=None, repr=False)
    """PEM: the private key of our certificate."""
    password: str | None = field(default=None, repr=False)
    """Of the key, if it is encrypted."""
    ca: str | None = field(default=None, repr=False)
    """PEM: the authorities that the server's certificate may come from, instead of those of this machine."""

    def context(self) -> ssl.SSLContext:
        """A client's context: TLS 1.2 or newer, host names checked.

        Python reads a key from files only: it is in one of this user's alone for the moment of reading.

        Raises:
            InvalidSettings: A text is not PEM, the key is another certificate's, or its password is wrong.
        """
        try:
            context = ssl.create_default_context(cadata=self.ca)
        except (ssl.SSLError, TypeError, ValueError):  # the second for text that is not ASCII
            raise InvalidSettings("the private CA is not a PEM certificate; give the text from -----BEGIN on") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate is not None:
            self._load(context, self.certificate)
        return context

    def _load(self, context: ssl.SSLContext, certificate: str) -> None:
        password = self.password
        with tempfile.TemporaryDirectory() as folder:  # mode 700
            chain, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
            chain.write_text(certificate, encoding="utf-8")
            key.write_text(self.key or "", encoding="utf-8")
            try:
                # A function, because OpenSSL would ask at the terminal where a password is missing.
                context.load_cert_chain(chain, key, password=lambda: password or "")
            except (ssl.SSLError, OSError, ValueError):
                raise InvalidSettings(
                    "the client certificate cannot be used: certificate and key have to be PEM texts that belong "
                    "together, and an encrypted key needs its password"
                ) from None

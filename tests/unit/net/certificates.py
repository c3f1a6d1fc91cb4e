"""Authorities and certificates for tests, made when they are needed: nothing that expires is kept in files."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key(self, password: str | None = None) -> str:
        """The key as PEM, encrypted if there is a password."""
        how = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()


@cache
def authority(name: str) -> Issued:
    """An authority that signs itself."""
    return _issued(name, None, [], ca=True)


@cache
def issued(name: str, by: str, *hosts: str) -> Issued:
    """A certificate of an authority, for addresses."""
    return _issued(name, authority(by), hosts, ca=False)


def _issued(name: str, by: Issued | None, hosts: Sequence[str], *, ca: bool) -> Issued:
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
    )
    signer = private if by is None else by.private
    authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(authority_key, critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host)) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return Issued(builder.sign(signer, hashes.SHA256()), private)


def server_context(folder: Path, server: Issued, clients: Issued | None) -> ssl.SSLContext:
    """A server's context; with an authority of clients, it lets in only who has a certificate of it."""
    (folder / "server.pem").write_text(server.pem + server.key())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if clients is not None:
        context.load_verify_locations(cadata=clients.pem)
        context.verify_mode = ssl.CERT_REQUIRED
    return context

"""Blobs as objects in a bucket of Amazon S3 or a compatible server.

    s3://bucket/prefix?region=eu-central-1&endpoint=https://objects.example.com

Credentials come from the `AWS_*` variables of the process or the role of its machine, never from the URL. The operator
chose the address, so the egress policy does not apply; plain HTTP to another machine needs `allow_http=true` in the
URL. Error messages contain only the server's error code, because the rest may repeat parts of a signed request.
"""

import io
import re
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from toolcrib.contracts import InvalidSettings
from toolcrib.contracts.base.errors import StoreUnavailable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Store

_PARAMETERS: Final = ("region", "endpoint", "allow_http")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_CONNECT_S: Final = 5
_REQUEST_S: Final = 120
"""Seconds of one attempt, the body included: 100 MB at less than 1 MB/s."""
_ATTEMPTS_S: Final = 20
"""Seconds after which no further attempt begins."""
_RETRIES: Final = 3


class BucketObjects:
    """Objects in a bucket, under a prefix. An object is written in one step, and only where there is none.

    Args:
        bucket: Must exist.
        prefix: What all keys begin with; may be empty.
        region: As the bucket's server names it; `AWS_REGION`, else `us-east-1`, if null.
        endpoint: Address of the server; Amazon's own if null.
    """

    def __init__(
        self, bucket: str, prefix: str = "", *, region: str | None = None, endpoint: str | None = None
    ) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._region = region
        self._endpoint = endpoint
        self._opened: S3Store | None = None

    async def put(self, path: str, data: bytes) -> None:
        """Write an object, unless there is one.

        Raises:
            StoreUnavailable: The bucket cannot be written.
        """
        import obstore  # noqa: PLC0415 - a binary module, needed with the first blob
        from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 - as above

        try:
            await obstore.put_async(self._store(), self._prefix + path, data, mode="create")
        except AlreadyExistsError:
            return
        except (BaseError, OSError) as error:
            raise self._unavailable("write", path, error) from None

    async def get(self, path: str) -> bytes | None:
        """What an object has; null if there is none.

        Raises:
            StoreUnavailable: The bucket cannot be read.
        """
        import obstore  # noqa: PLC0415 - a binary module, needed with the first blob
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above

        gathered = io.BytesIO()  # its value is not copied again, so that a large object is in memory once
        try:
            found = await obstore.get_async(self._store(), self._prefix + path)
            async for part in found.stream():
                gathered.write(part)
        except (BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError) and _reason(error) != "NoSuchBucket":
                return None
            raise self._unavailable("read", path, error) from None
        return gathered.getvalue()

    def discard(self, paths: Sequence[str]) -> None:
        """Remove objects, some of which may be gone.

        Raises:
            StoreUnavailable: The bucket cannot be written.
        """
        import obstore  # noqa: PLC0415 - a binary module, needed with the first blob
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above

        try:
            obstore.delete(self._store(), [self._prefix + path for path in paths])
        except (BaseError, OSError) as error:
            raise self._unavailable("remove", paths[0], error) from None

    def where(self, path: str) -> str:
        """The object, as Amazon's tools name it."""
        return f"s3://{self._bucket}/{self._prefix}{path}"

    def _store(self) -> "S3Store":
        if self._opened is None:
            from obstore.store import S3Store  # noqa: PLC0415 - a binary module, needed with the first blob

            client: ClientConfig = {
                "allow_http": True,  # to such an endpoint as `bucket_of` lets pass
                "connect_timeout": timedelta(seconds=_CONNECT_S),
                "timeout": timedelta(seconds=_REQUEST_S),
            }
            retry: RetryConfig = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_ATTEMPTS_S)}
            place: S3Config = {}
            if self._region is not None:
                place["region"] = self._region
            if self._endpoint is not None:
                place["endpoint"] = self._endpoint
            self._opened = S3Store(self._bucket, config=place, client_options=client, retry_config=retry)
        return self._opened

    def _unavailable(self, doing: str, path: str, error: Exception) -> StoreUnavailable:
        advice = "check the bucket, its region, and the credentials in the AWS_* variables or the machine's role"
        return StoreUnavailable(f"cannot {doing} {self.where(path)}: {_reason(error)}; {advice}")


def bucket_of(url: SplitResult) -> BucketObjects:
    """The bucket that a URL names.

    Raises:
        InvalidSettings: It names none, has credentials or unknown parameters, or a plain-text endpoint elsewhere.
    """
    if "@" in url.netloc or ":" in url.netloc:
        msg = (
            "a URL of blobs must not have credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
            "nor a port, which belongs to the endpoint"
        )
        raise InvalidSettings(msg)
    if _BUCKET.fullmatch(url.netloc) is None:
        raise InvalidSettings(f"a URL of blobs names the bucket {url.netloc!r}, which is not a valid bucket name")
    given = dict(parse_qsl(url.query, keep_blank_values=True))
    unknown = [name for name in given if name not in _PARAMETERS]
    if unknown:
        msg = f"a URL of blobs has the parameter {unknown[0]!r}; it may have {', '.join(_PARAMETERS)}"
        raise InvalidSettings(msg)
    endpoint = given.get("endpoint")
    if endpoint is not None:
        _check_endpoint(endpoint, allow_http=given.get("allow_http") == "true")
    return BucketObjects(url.netloc, url.path, region=given.get("region"), endpoint=endpoint)


def _check_endpoint(endpoint: str, *, allow_http: bool) -> None:
    parts = _split(endpoint)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise InvalidSettings("the endpoint of blobs must be https://host or http://host:port, without credentials")
    if parts.scheme == "http" and not (allow_http or _is_here(parts.hostname)):
        msg = (
            f"the endpoint http://{parts.hostname} of blobs would send them in plain text to another machine; "
            "use https, or add allow_http=true if the network between is yours"
        )
        raise InvalidSettings(msg)


def _split(endpoint: str) -> SplitResult | None:
    """The parts of an address; null if its brackets or its port are none."""
    try:
        parts = urlsplit(endpoint)
        is_reachable = parts.port != 0
    except ValueError:
        return None
    return parts if is_reachable else None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: Exception) -> str:
    """The code of a server's answer, its status, or what kind of failure it is: nothing of what was sent."""
    text = str(error)
    for pattern in (_CODE, _STATUS):
        found = pattern.search(text)
        if found is not None:
            return found[1]
    return "no answer" if "error sending request" in text else type(error).__name__

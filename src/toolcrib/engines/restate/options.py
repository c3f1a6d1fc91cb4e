"""What an operator says about a Restate cluster. Plain data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestateOptions:
    """Where Restate is, how it reaches a worker, and how long it waits. All durations are seconds."""

    ingress_url: str = "http://127.0.0.1:8080"
    """Where runs are handed over."""
    admin_url: str = "http://127.0.0.1:9070"
    """Where workers are registered."""
    worker_host: str = "127.0.0.1"
    """Where a worker listens."""
    worker_port: int = 9080
    """Its port, which several workers of one machine share; 0 takes any free one."""
    worker_url: str | None = None
    """How Restate reaches the workers; where this one listens, if null."""
    sweep_s: float = 1.0
    """Between looks for runs that can go on and that nobody drives."""
    inactivity_s: float = 60.0
    """After which Restate asks a quiet worker to let go of an invocation."""
    abort_s: float = 86_400.0
    """After which it cuts that worker off."""
    retention_s: float = 86_400.0
    """How long it remembers an invocation that has ended."""
    max_retry_s: float = 30.0
    """The longest it waits between two attempts to reach a worker."""
    identity_keys: tuple[str, ...] = ()
    """Public keys (`publickeyv1_…`) of which one must have signed what reaches a worker; none for no such check."""

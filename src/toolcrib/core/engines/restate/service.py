"""The worker's service for Restate: one virtual object per run id, with one handler.

An invocation drives a run until it ends or waits, as one journaled step whose result has only run ids and seconds, and
then sends what follows. A timer is a delayed message. The handler is shared, because the lease ensures a single
driver; a stuck invocation cannot block others. Only workers load this module, because it needs Restate's library.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
import restate
from restate.exceptions import RetryableError
from restate.server import install_shutdown_hook

from toolcrib.contracts import Unavailable
from toolcrib.core.engines.restate.drives import DriveOutcome
from toolcrib.core.engines.restate.ingress import HANDLER, SERVICE
from toolcrib.core.engines.restate.options import RestateOptions

Drive: TypeAlias = Callable[[str], Awaitable[DriveOutcome]]

_FIRST_RETRY: Final = timedelta(milliseconds=100)
_ENDLESS: Final = 2**31 - 1

_logger = logging.getLogger(__name__)


def make_app(drive: Drive, options: RestateOptions) -> Any:
    """The ASGI application of a worker, which needs HTTP/2.

    Args:
        drive: Drives a run.
        options: Time-outs and keys.
    """
    runs = restate.VirtualObject(
        SERVICE,
        description="Drives the runs of a Toolcrib store. The keys are run ids; the runs themselves are in that store.",
        inactivity_timeout=timedelta(seconds=options.inactivity_s),
        abort_timeout=timedelta(seconds=options.abort_s),
        journal_retention=timedelta(seconds=options.retention_s),
        idempotency_retention=timedelta(seconds=options.retention_s),
        state_preload=False,
        invocation_retry_policy=restate.InvocationRetryPolicy(
            initial_interval=_FIRST_RETRY,
            exponentiation_factor=2,
            max_interval=timedelta(seconds=options.max_retry_s),
            max_attempts=_ENDLESS,
            on_max_attempts="pause",
        ),
    )

    @runs.handler(HANDLER, kind="shared")
    async def drive_run(ctx: restate.ObjectSharedContext, asked_by: str) -> str:
        run_id = ctx.key()
        stored = await ctx.run_typed("drive", partial(step, drive, run_id))
        driving = msgspec.convert(stored, DriveOutcome)
        if driving.standing == "journal_missing":
            msg = f"journal_missing: the store has no run {run_id}; it was pruned, or is older than Restate's data"
            raise restate.TerminalError(msg, status_code=404)
        for one in driving.next:
            ctx.object_send(
                drive_run, one.run_id, asked_by, send_delay=timedelta(seconds=one.in_s), idempotency_key=one.once
            )
        return driving.standing

    return restate.app([runs], identity_keys=list(options.identity_keys))


def on_sigterm(tell: Callable[[], None]) -> None:
    """Have somebody told of a SIGTERM that the library takes: it sets a handler of its own when its application starts.

    A signal that has come before, while the process was busy, is delivered to that one too.
    """
    install_shutdown_hook(asyncio.get_running_loop(), tell)


async def step(drive: Drive, run_id: str) -> dict[str, Any]:
    """Drive a run. Of a failure Restate is told to try again and no more: not what was worked on, and no traceback.

    Args:
        drive: Drives it.
        run_id: The run.

    Returns:
        A `Driving` as JSON.

    Raises:
        RetryableError: It cannot be driven now; to be tried again.
    """
    try:
        return msgspec.to_builtins(await drive(run_id))
    except Unavailable as lack:
        _logger.warning("%s", lack)
        raise RetryableError(str(lack)) from lack
    except Exception as crash:  # the edge of the process: what is said here stays in Restate
        _logger.exception("run %s cannot be driven at the moment", run_id)
        msg = f"driving the run failed with {type(crash).__name__}; the worker's log tells more"
        raise RetryableError(msg) from crash

"""A process that crashes in the middle of a call, and another one that continues its runs: without processes.

Example:
    from toolcrib.testing import crash, restart

    with crash(crib, after="update_deals"):
        await crib.invoke("update_deals", {"ids": ["d1"], "stage": "Won"})
    [result] = await restart(crib)  # the call is repeated, because update_deals is idempotent
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from toolcrib.contracts import InvalidInput
from toolcrib.core.executor import Dispatch, Dispatcher, Outcome
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib, Crib, SharingOptions
from toolcrib.testing.cribs import advance


@contextmanager
def crash(crib: ActingCrib, *, before: str | None = None, after: str | None = None, call: int = 1) -> Generator[None]:
    """Let the process die at a call of a tool: what drives the run stops there, and writes nothing more.

    The block ends at that point without an exception. The run and its journal are as a killed process leaves them: the
    intent of the call is written, its outcome is not. `restart` continues.

    Args:
        crib: The crib whose runs are driven in the block.
        before: The tool whose call is cut off before the tool begins.
        after: The tool whose call is cut off when the tool has ended, before its outcome is written.
        call: Which call of the tool it is, counted from 1.

    Raises:
        InvalidInput: Not exactly one of `before` and `after` is given, or `call` is below 1.
        AssertionError: The tool was not called so often in the block.

    Example:
        from toolcrib.testing import crash, restart

        with crash(crib, before="update_deals"):
            await crib.invoke("update_deals", {"ids": ["d1"], "stage": "Won"})
        [result] = await restart(crib)
        print(result.status)
    """
    tool = before or after
    if tool is None or (before and after) or call < 1:
        msg = "name one call: crash(crib, before='tool') or crash(crib, after='tool'), with call=1 or more"
        raise InvalidInput(msg)
    point = _CrashPoint(tool, call, is_before=before is not None)
    with crib.executor.intercepted(lambda own: _CrashingDispatcher(own, point)):
        try:
            yield
        except _CrashError:
            return
    msg = f"nothing crashed: tool {tool!r} was called {point.seen} times in the block, and call {call} was to crash"
    raise AssertionError(msg)


async def restart(crib: Crib) -> Sequence[Result]:
    """Let the lease of a process that died run out, and resume its runs, as another process would.

    Args:
        crib: A crib with a `FrozenClock`, which moves by ten seconds.

    Returns:
        The runs that were resumed, as they stand now.

    Raises:
        InvalidInput: The crib has another clock.

    Example:
        from toolcrib.testing import crash, restart

        with crash(crib, after="update_deals"):
            await crib.invoke("update_deals", {"ids": ["d1"], "stage": "Won"})
        print([result.status for result in await restart(crib)])
    """
    return await advance(crib, seconds=SharingOptions().lease_s)


class _CrashError(BaseException):
    """The process has died; no part of the library catches it."""


@dataclass(slots=True)
class _CrashPoint:
    tool: str
    call: int
    is_before: bool
    seen: int = 0


class _CrashingDispatcher:
    """Runs tools, and raises at one call.

    Args:
        own: Runs them.
        point: Where it raises.
    """

    def __init__(self, own: Dispatcher, point: _CrashPoint) -> None:
        self._own = own
        self._point = point

    async def dispatch(self, dispatch: Dispatch) -> Outcome:
        """Execute once; see `Dispatcher`."""
        point = self._point
        is_here = dispatch.tool.name == point.tool
        point.seen += is_here
        is_here = is_here and point.seen == point.call
        if is_here and point.is_before:
            raise _CrashError
        outcome = await self._own.dispatch(dispatch)
        if is_here:
            raise _CrashError
        return outcome

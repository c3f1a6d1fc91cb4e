"""The world behind the tools of the suite: one act, which can go well, or wrong in a few ways."""

import asyncio
from enum import StrEnum

from toolcrib.contracts import JsonObject

SECRET = "hunter2-but-longer"
ENVIRONMENT = {"KEY": SECRET}


class Behaviour(StrEnum):
    """What the act is asked for, by its argument `text`."""

    SUCCEED = "ok"
    BE_BIG = "big"
    HANG = "hang"
    FAIL_ONCE = "flaky"
    BE_UNREACHABLE = "unreachable"
    REFUSE_CREDENTIALS = "refused"
    TELL_SECRET = "secret"


class Flaky(Exception):
    """It fails, and may work the next time."""


class Unreachable(Exception):
    """It is not there."""


class Refused(Exception):
    """It does not accept the credentials."""


class Mischief(Exception):
    """It does something else: what, only its kind knows how to do."""

    def __init__(self, what: object) -> None:
        super().__init__(what)
        self.what = what


class World:
    """Acts, and remembers how often."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        """What was asked for, in order."""
        self.started = asyncio.Event()
        self.released = asyncio.Event()
        """What hangs goes on when it is set."""
        self.mischief: Mischief | None = None
        """What it does instead of acting."""

    async def act(self, text: str) -> JsonObject:
        """Do what is asked for.

        Raises:
            Flaky: The first time that it is asked to fail once.
            Unreachable: It is asked to be.
            Refused: It is asked to refuse.
            Mischief: It is in the mood.
        """
        self.acts.append(text)
        self.started.set()
        if self.mischief is not None:
            raise self.mischief
        match text:
            case Behaviour.BE_BIG:
                return {"said": "big " * 1_000}
            case Behaviour.HANG:
                await self.released.wait()
            case Behaviour.FAIL_ONCE if self.acts.count(text) == 1:
                raise Flaky
            case Behaviour.BE_UNREACHABLE:
                raise Unreachable
            case Behaviour.REFUSE_CREDENTIALS:
                raise Refused
            case Behaviour.TELL_SECRET:
                return {"said": f"it is {SECRET}"}
            case _:
                pass
        return {"said": "ok"}

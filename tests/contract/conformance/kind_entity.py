"""Rows of a database: what the world says stands in a table."""

import asyncio
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy import event

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.world import SECRET, Behaviour, World
from toolcrib import Crib
from toolcrib.contracts import ToolDefinition
from toolcrib.kinds.entity.importer.engines import open_engine

_ACTS = sa.Table(
    "acts",
    sa.MetaData(),
    sa.Column("text", sa.String(20), primary_key=True),
    sa.Column("said", sa.String),
)
_SAID = {"ok": "ok", "big": "big " * 1_000, "hang": "ok", "flaky": "ok", "secret": f"it is {SECRET}"}


class EntityKind(Kind):
    """The tool that gets a row by its key, from SQLite."""

    name = "entity"
    cannot: ClassVar = {
        Behaviour.BE_UNREACHABLE: "SQLite is a file of this machine; servers are tested with the kind itself",
        Behaviour.REFUSE_CREDENTIALS: "SQLite knows none",
        Behaviour.FAIL_ONCE: "SQLite waits itself for what is busy",
    }

    only_reads = "to get a row is to read; operations that write have other arguments, and tests of their own"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._pause = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._engine: sa.Engine
        self._generated: ToolDefinition

    async def open(self, stack: AsyncExitStack) -> None:
        folder = stack.enter_context(TemporaryDirectory())
        await asyncio.to_thread(Path(folder, "world.db").touch)
        self._engine = open_engine(f"sqlite:///{folder}/world.db")
        _ACTS.metadata.create_all(self._engine)
        with self._engine.begin() as connection:
            connection.execute(_ACTS.insert(), [{"text": text, "said": said} for text, said in _SAID.items()])
        stack.callback(self._engine.dispose)
        self._loop = asyncio.get_running_loop()
        event.listen(self._engine, "before_cursor_execute", self._before)

    async def furnish(self, crib: Crib) -> None:
        imported = await crib.add_entities("world", self._engine, _ACTS)
        self._generated = next(tool for tool in imported.tools if tool.name.startswith("get_"))

    def definition(self) -> ToolDefinition:
        ours = {"name": NAME, "source": "manual", "input_schema": INPUT, "output_schema": None}
        return self._generated.model_copy(update=ours)

    def _before(self, _connection: Any, _cursor: Any, _statement: str, parameters: Any, *_rest: Any) -> None:
        """In the thread of the database: note what is looked up, and wait as long as the world hangs."""
        text = next((value for value in parameters if value in _SAID), None)
        if text is None:
            return
        self.world.acts.append(text)
        if self.world.mischief is not None:
            raise self.world.mischief.what  # pyright: ignore[reportGeneralTypeIssues] - an exception of SQLAlchemy
        self._loop.call_soon_threadsafe(self.world.started.set)
        while text == Behaviour.HANG and not self.world.released.is_set():
            self._pause.wait(0.005)

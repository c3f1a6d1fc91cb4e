"""A shop's tables as an application maps them, and a crib that has their tools."""

import enum
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from toolcrib import Crib, entity
from toolcrib.contracts import ErrorCode, JsonObject, Reason, ToolEnvelope
from toolcrib.kinds.entity.importer.engines import open_engine


class Base(DeclarativeBase):
    """Of all mapped classes here."""


class Status(enum.Enum):
    """Of an order."""

    OPEN = "open"
    PAID = "paid"
    CLOSED = "closed"


class Customer(Base):
    """Who buys."""

    __tablename__ = "customers"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    email: Mapped[str] = mapped_column(sa.String(40), unique=True, comment="Where bills go")
    birthday: Mapped[date | None]
    orders: Mapped[list["Order"]] = relationship(back_populates="customer")


@entity(
    description="Customer purchase orders with line items and fulfillment status",
    category="order_management",
    exclude={"delete"},
    searchable=("id", "status", "total", "quantity", "placed", "note", "gift", "customer_id"),
    tags=("oms",),
)
class Order(Base):
    __tablename__ = "orders"
    __table_args__ = (sa.CheckConstraint("quantity > 0", name="quantity_positive"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[UUID | None] = mapped_column(sa.ForeignKey("customers.id"))
    status: Mapped[Status] = mapped_column(default=Status.OPEN)
    total: Mapped[Decimal] = mapped_column(sa.Numeric(10, 2), doc="What is to be paid")
    quantity: Mapped[int] = mapped_column(server_default="1")
    placed: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    note: Mapped[str | None]
    gift: Mapped[bool] = mapped_column(default=False)
    picture: Mapped[bytes | None]
    extra: Mapped[Any | None] = mapped_column(sa.JSON(none_as_null=True))
    version: Mapped[int] = mapped_column()
    customer: Mapped[Customer | None] = relationship(back_populates="orders")

    __mapper_args__: ClassVar = {"version_id_col": version}


TAGS = sa.Table(
    "tags",
    sa.MetaData(),
    sa.Column("label", sa.String(20), primary_key=True),
    sa.Column("weight", sa.Float),
)


@contextmanager
def engine_for(url: str) -> Generator[sa.Engine]:
    """The application's engine, with its tables made."""
    engine = open_engine(url)
    Base.metadata.create_all(engine)
    TAGS.create(engine)
    try:
        yield engine
    finally:
        engine.dispose()


class Shop:
    """Calls tools of a crib."""

    def __init__(self, crib: Crib, engine: sa.Engine) -> None:
        self.crib = crib
        self.engine = engine

    async def call(self, name: str, /, **arguments: Any) -> ToolEnvelope:
        return await self.crib.call(name, arguments)

    async def done(self, name: str, /, **arguments: Any) -> Any:
        """The output of a call that succeeds."""
        envelope = await self.call(name, **arguments)
        assert envelope.error is None, envelope.error
        return envelope.output

    async def refused(self, name: str, /, **arguments: Any) -> "Refusal":
        """The error of a call that does not."""
        envelope = await self.call(name, **arguments)
        assert envelope.error is not None, envelope.output
        return Refusal(envelope)

    async def order(self, **given: Any) -> JsonObject:
        return await self.done("create_order", **{"total": "10.00", **given})

    def rows(self, table: str) -> int:
        with self.engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one()


class Refusal:
    """Why a call failed."""

    def __init__(self, envelope: ToolEnvelope) -> None:
        assert envelope.error is not None
        self.code: ErrorCode = envelope.error.code
        self.reason: Reason | None = envelope.error.reason
        self.message = envelope.error.message
        self.details: JsonObject = envelope.error.details or {}


@asynccontextmanager
async def open_shop(url: str, *, environment: dict[str, str] | None = None) -> AsyncGenerator[Shop]:
    """A crib with the tools of the shop, over the application's engine."""
    with engine_for(url) as engine:
        async with Crib("memory://", environment=environment or {}) as crib:
            await crib.add_entities("shop", engine, Order, Customer, TAGS)
            yield Shop(crib, engine)

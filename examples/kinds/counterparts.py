"""What the tools of the example talk to: a web API and an MCP server at one port, a gRPC server, and a database."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import uvicorn
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.reflection import SERVICE_NAME, enable_server_reflection
from mcp.server import MCPServer
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, create_engine, insert
from sqlalchemy.pool import StaticPool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

ORDERS = Table(
    "orders",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("sku", String(20), nullable=False),
    Column("pieces", Integer, nullable=False),
)
PROTO = """
name: "shop.proto" package: "shop" syntax: "proto3"
message_type { name: "Item" field { name: "sku" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "Stock" field { name: "pieces" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
service { name: "Warehouse" method { name: "Count" input_type: ".shop.Item" output_type: ".shop.Stock"
  options { idempotency_level: NO_SIDE_EFFECTS } } }
"""


def database() -> Engine:
    """Two orders, in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    ORDERS.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(ORDERS), [{"sku": "bolt", "pieces": 70}, {"sku": "bolt", "pieces": 50}])
    return engine


@asynccontextmanager
async def warehouse() -> AsyncGenerator[int]:
    """A gRPC server with reflection that has 100 pieces of everything; yields its port."""
    pool = DescriptorPool()
    pool.Add(text_format.Parse(PROTO, FileDescriptorProto()))
    item, stock = (GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}")) for name in ("Item", "Stock"))

    async def count(request: Any, context: object) -> Any:
        return stock(pieces=100)

    method: Any = grpc.unary_unary_rpc_method_handler
    service = {"Count": method(count, item.FromString, stock.SerializeToString)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("shop.Warehouse", service)])
    enable_server_reflection(("shop.Warehouse", SERVICE_NAME), server, pool=pool)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def quote(sku: str, pieces: int) -> dict[str, float]:
    """What a supplier asks for so many pieces."""
    return {"usd": pieces * 0.5}


async def rate(request: Request) -> Response:
    """The rate of a currency."""
    return JSONResponse({"currency": request.query_params["currency"], "per_usd": 0.9})


@asynccontextmanager
async def web() -> AsyncGenerator[int]:
    """`GET /rate` and an MCP server at `/mcp`; yields their port."""
    supplier = MCPServer("supplier", log_level="ERROR")
    supplier.tool()(quote)
    supplier.custom_route("/rate", ["GET"])(rate)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(supplier.streamable_http_app(), log_config=None))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield int(listening.getsockname()[1])
        finally:
            server.should_exit = True
            await task

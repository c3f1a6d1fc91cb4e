"""What the conformance suite starts as its client: has `tests.wire.mcp_conformance` do the work, says how it went.

A program of the standard library, so that dozens of them start in no time.
"""

import json
import os
import socket
import sys


def main(path: str, url: str) -> str:
    """Hand on what the suite gives; returns what went wrong."""
    context = os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")
    with socket.socket(socket.AF_UNIX) as process:
        process.connect(path)
        process.sendall(json.dumps({"url": url, "context": context}).encode() + b"\n")
        said = process.makefile().read()
    return said.removeprefix("0")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) or 0)

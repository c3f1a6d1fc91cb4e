"""An MCP server over standard input and output that behaves as its first argument says. Run as a program, by tests."""

import json
import os
import subprocess
import sys
import time
from typing import Any

LIST = [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]


def answer(message: dict[str, Any], mode: str) -> dict[str, Any]:
    """The result of a request."""
    match message["method"]:
        case "initialize":
            info = {"name": "program", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": LIST}
        case _:
            return {"content": [{"type": "text", "text": act(mode)}]}


def act(mode: str) -> str:
    """What a call does."""
    match mode:
        case "crash":
            sys.stderr.write(f"about to fail with {os.environ.get('TOKEN', 'nothing')}\n")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            time.sleep(3600)
        case "long":
            say("x" * 60_000_000)
        case "noise":
            say("this is no message")
            say('{"neither": "is this"}')
            sys.stderr.write("x" * 100_000)
        case "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
            return str(child.pid)
        case "environment":
            return json.dumps(dict(os.environ))
        case _:
            pass
    return f"{mode} {os.getpid()}"


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(mode: str) -> None:
    """Answer until the input ends, or even longer."""
    if mode == "stillborn":
        sys.exit("it cannot start today")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "server/discover":
            error = {"code": -32601, "message": "unknown"}
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        elif "id" in message and "method" in message:
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message, mode)}))


if __name__ == "__main__":
    main(sys.argv[1])

"""The command line. Each command imports what it needs when it runs, so that `toolcrib --help` is quick."""

from toolcrib.interfaces.cli.app import main

__all__ = ["main"]

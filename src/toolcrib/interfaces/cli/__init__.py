"""The command line, `toolcrib`. Each command imports what it needs when it runs, so that `toolcrib --help` is fast.

`app` combines the commands; each folder has the commands of a subject, `support` and `render` what they share. No
other package imports it.
"""

from toolcrib.interfaces.cli.app import main

__all__ = ["main"]

"""An example for each command, printed below its options and on the page of the command line."""

from typing import Final

EXAMPLES: Final[dict[str, str]] = {}

"""Python clients that need versions of packages that the development environment cannot have.

Each script runs in an environment of its own, which is made from the file of pinned packages that it names.
"""

from pathlib import Path
from typing import Final

from benchmarks.environments import environment_python

_HERE: Final = Path(__file__).parent


def client_command(script: str, packages: str, *arguments: str) -> list[str]:
    """The command that runs a client.

    Args:
        script: Its file in this folder, without the ending.
        packages: The file in this folder, without the ending, that names what it needs.
        *arguments: Of the script.
    """
    python = environment_python(_HERE / f"{packages}.txt")
    return [str(python), str(_HERE / f"{script}.py"), *arguments]

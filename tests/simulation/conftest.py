"""What the simulations begin with."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.simulation.files import template


@pytest.fixture(scope="session")
def office() -> Generator[Path]:
    """A folder with a store that has the office's definitions."""
    with template() as folder:
        yield folder

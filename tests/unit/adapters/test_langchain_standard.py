"""LangChain's own standard tests pass on a tool of a crib."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.builds import uv

STANDARD = "langchain-tests==1.1.9"
"""It brings NumPy and five plugins of pytest, and so is no dependency of the other tests."""
PROGRAM = Path(__file__).with_name("langchain_standard.py")
ROOT = PROGRAM.parents[3]


@pytest.mark.soak
@pytest.mark.requirement("adapters.outward")
def test_a_tool_of_a_crib_passes_the_standard_tests_of_langchain():
    layer = [uv(), "run", "--frozen", "--no-sync", "--python", sys.executable, "--with", STANDARD]
    settings = ["addopts=--import-mode=importlib -p no:toolcrib", "filterwarnings=default", "asyncio_mode=auto"]
    options = [word for setting in settings for word in ("-o", setting)]
    command = [*layer, "python", "-m", "pytest", str(PROGRAM), "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert passed is not None
    assert int(passed[1]) >= 9

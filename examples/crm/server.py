"""Start the CRM from any working directory: `python /path/to/examples/crm/server.py --db PATH`.

A script's own folder leads `sys.path`, where the `examples` package cannot be found; this replaces it by the folder
that holds the package and hands over to `examples/crm/__main__.py`. `python -m examples.crm` is the same thing.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    runpy.run_module("examples.crm", run_name="__main__", alter_sys=True)

"""Finding the examples: beside the source in a checkout, inside the package where it was installed from a wheel."""

import sys
from importlib.util import find_spec
from pathlib import Path

import toolcrib

_PACKAGE = Path(toolcrib.__file__).parent


def make_importable() -> None:
    """Let `import examples.crm` find the examples.

    Raises:
        NotFound: They were not installed.
    """
    from toolcrib.contracts import NotFound

    for folder in (_PACKAGE / "_bundled", _PACKAGE.parents[1]):
        if (folder / "examples" / "crm" / "demo.py").is_file():
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            return
    msg = f"the examples are neither in {_PACKAGE} nor beside it; install toolcrib from its wheel or a checkout"
    raise NotFound(msg)


def require(extra: str, *packages: str) -> None:
    """Check that the packages of an extra are installed.

    Raises:
        InvalidSettings: One is not.
    """
    from toolcrib.contracts import InvalidSettings

    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        msg = f"this needs {' and '.join(missing)}, which is not installed: pip install 'toolcrib[{extra}]'"
        raise InvalidSettings(msg)

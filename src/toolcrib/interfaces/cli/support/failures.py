"""How a command is refused: one line on stderr, or one JSON object there with `--json`; and the exit status.

The exit status is 2 for invalid input, else 1. Exceptions that are not of the library keep their traceback.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import typer

if TYPE_CHECKING:
    from toolcrib.interfaces.cli.render.documents import CommandError

USAGE, FAILURE = 2, 1
USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__base__)
"""What is raised for arguments that a command does not take."""


def usage_error(message: str) -> Exception:
    """An error for arguments that a command does not take."""
    return USAGE_ERROR(message)


def exit_status(failure: Exception) -> int | None:
    """The exit status that an error means; null for an unexpected exception."""
    from toolcrib.contracts import InvalidInput, ToolcribError

    match failure:
        case InvalidInput():
            return USAGE
        case ToolcribError():
            return FAILURE
        case _ if isinstance(failure, USAGE_ERROR):
            return USAGE
        case _:
            return None


def is_refusal(failure: Exception, *, as_json: bool) -> bool:
    """Whether an exception is reported in one line; without `--json`, an error of usage is shown with the usage."""
    if isinstance(failure, USAGE_ERROR):
        return as_json
    return exit_status(failure) is not None


def report(failure: Exception, path: Sequence[str], *, as_json: bool, siblings: Sequence[str] = ()) -> typer.Exit:
    """Print why a command was refused.

    Args:
        failure: An error of the library, or of usage.
        path: The words of the command.
        as_json: Whether one JSON object is printed, in place of lines.
        siblings: The commands of its group.

    Returns:
        The exit.
    """
    found = _document(failure, path, siblings)
    if as_json:
        print(f'{{"error": {found.model_dump_json()}}}', file=sys.stderr)
    else:
        _print(found)
    return typer.Exit(found.exit_status)


def _print(found: "CommandError") -> None:
    placed = [each for each in found.problems if "file" in each]
    for each in placed:
        path = f"{each['path']}: " if each.get("path") else ""
        print(f"{each['file']}:{each['line']}: error: {path}{each['problem']}", file=sys.stderr)
    if placed:
        return
    told = found.message
    if "; " not in told and "toolcrib " not in told:  # else it says what to do
        told = f"{told}; {found.next_step}"
    print(f"toolcrib: {told}", file=sys.stderr)


def _document(failure: Exception, path: Sequence[str], siblings: Sequence[str]) -> "CommandError":
    from toolcrib.interfaces.cli.render.documents import CommandError

    message = getattr(failure, "message", None) if isinstance(failure, USAGE_ERROR) else None
    return CommandError(
        code=str(getattr(failure, "code", "usage")),
        message=" ".join(str(message or failure).split()),
        next_step=_next_step(failure, path, siblings),
        exit_status=exit_status(failure) or FAILURE,
        problems=tuple(getattr(failure, "problems", ())),
    )


def _next_step(failure: Exception, path: Sequence[str], siblings: Sequence[str]) -> str:
    """What a person can do after an error of a command."""
    from toolcrib import contracts

    group = " ".join(("toolcrib", *path[:-1]))
    match failure:
        case contracts.InvalidSettings() | contracts.EgressDenied():
            return "see toolcrib settings for every setting and where its value comes from"
        case contracts.NotFound() if "list" in siblings:
            return f"see {group} list for what there is"
        case contracts.Conflict() if "show" in siblings:
            return f"see {group} show for its state"
        case contracts.ReconnectRequired() | contracts.Unauthenticated():
            return "check the credentials with toolcrib provider test NAME"
        case contracts.PermissionDenied():
            return "ask the operator for the grant"
        case contracts.Unavailable() | contracts.ModelError():
            return "try again, and check toolcrib settings if it fails again"
        case _:
            return f"see {' '.join(('toolcrib', *path))} --help for the arguments and an example"


def problems_in(file: str, problems: Sequence[tuple[int, str, str]], message: str) -> Any:
    """The error for a file with problems, each at a line.

    Args:
        file: Its name.
        problems: Line, path in the document, and what is wrong; in any order.
        message: What is wrong as a whole.
    """
    from toolcrib.contracts import InvalidDefinition

    told = [{"file": file, "line": line, "path": path, "problem": what} for line, path, what in sorted(problems)]
    return InvalidDefinition(message, told)

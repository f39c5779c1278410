"""The `irscope` program: runs one command, and turns errors into a message and an exit code."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

_PROGRAMS = (".py", ".ipynb")
_IR = (".ttir", ".ttgir", ".llir", ".ptx", ".amdgcn")
_NOT_RECORDING = ("show", "ls", "import", "doctor", "serve")
FILE_OPTIONS = (
    "--also", "--baseline", "--cache-dir", "--check", "--counters", "--each", "--edited", "--filecheck", "--from",
    "--golden", "--markdown", "--output", "-o", "--plan", "--proton", "--pytest", "--python",
    "--python-output", "--show", "--to", "--ttgir", "--vs",
)  # fmt: skip
"""The options whose value may be the name of a file: it is no subject."""


def main() -> None:
    """Run the command line and end the process: exit code 0 done, 1 failed, 2 misuse, 130 or 143 interrupted."""
    # Nearly everything that a command imports and reads lives to its end, so garbage collection finds nothing.
    gc.set_threshold(100_000, 20, 20)
    from irscope.interruption import Interrupted, exit_code, raise_on_signals

    try:
        raise_on_signals()
        with _recording_begun(sys.argv[1:]):
            from irscope.cli.streams import open_streams

            open_streams()
            code = run(sys.argv[1:])
    except Interrupted as stop:
        # The signal arrived while the command line itself was being loaded.
        print("irscope: interrupted", file=sys.stderr)
        code = exit_code(stop)
    sys.stderr.flush()
    atexit._run_exitfuncs()
    # Unloading all modules would take a tenth of the time of a short command.
    os._exit(code)


def _recording_begun(arguments: list[str]) -> AbstractContextManager[None]:
    """Import Triton in another process, if a command names a file to be recorded, while the command itself is read."""
    if names_program(_own(arguments)):
        from irscope.record.process.child import warm_children

        return warm_children(at_once=True, persistent=False)
    return nullcontext()


def names_program(own: list[str]) -> bool:
    """Whether a command line names a file that its command records, as far as its words alone tell."""
    name = next((word for word in own if not word.startswith("-")), "")
    if not name or name in _NOT_RECORDING or "--help" in own or "-h" in own:
        return False
    # What `diff` is given as IR is compared as it is.
    recorded = _PROGRAMS if name == "diff" else (*_PROGRAMS, *_IR)
    subjects = [word for before, word in pairwise(own) if before not in FILE_OPTIONS and not word.startswith("-")]
    return any(word.partition("::")[0].endswith(recorded) for word in subjects)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    # Handled here, because it may be anywhere before the arguments of the script.
    own = _own(arguments)
    rest = arguments[len(own) :]
    debug = "--debug" in own
    own = [word for word in own if word != "--debug"]
    if own[:1] == ["help"]:
        own = [*own[1:], "--help"]
    import click

    from irscope.cli.commands import main_group
    from irscope.cli.streams import unfiltered_stderr
    from irscope.errors import IrscopeError
    from irscope.interruption import Interrupted, exit_code

    try:
        commands = main_group()
        if "_IRSCOPE_COMPLETE" in os.environ:
            commands.main(prog_name="irscope")
        with commands.make_context("irscope", [*own, *rest] or ["--help"]) as context:
            code = commands.invoke(context)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # The reader closed the pipe (`| head`): Python must not report that at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        # An unknown option, a missing value: misuse.
        with unfiltered_stderr():
            error.show()
        return 2
    except (click.Abort, KeyboardInterrupt, Interrupted) as stop:
        print("irscope: interrupted", file=sys.stderr)
        return exit_code(stop)
    except Exception as error:
        if debug:
            raise
        print(f"irscope: {_message_of(error, own)}", file=sys.stderr)
        return error.exit_code if isinstance(error, IrscopeError) else 1


def _message_of(error: Exception, own: list[str]) -> str:
    """What is said of an error that ended a command, `own` without the arguments of its script."""
    from irscope.errors import IrscopeError, installing

    if isinstance(error, IrscopeError):
        return str(error)
    if isinstance(error, OSError):
        parts = [str(part) for part in (error.filename, error.strerror or error) if part]
        if error.filename is None and error.errno == errno.ENOENT and not _has_working_folder():
            parts = ["the working folder does not exist any more: change to another one"]
        elif error.filename is None and error.errno == errno.ENOSPC:
            # Python's streams do not name what they write to.
            parts = ["standard output, or a temporary file (TMPDIR=FOLDER names another place)", *parts]
        return ": ".join(parts)
    if isinstance(error, MemoryError):
        command = " ".join(["irscope", *own[:2]])
        return f"not enough memory for {command!r}: give it more (ulimit -v, the container's limit), or a smaller file."
    if isinstance(error, ModuleNotFoundError) and error.name in ("numpy", "ml_dtypes"):
        return f"{' '.join(own[:1])} needs the package {error.name}: {installing('machine')}."
    return (
        f"internal error, {type(error).__name__}: {error}. Run it again with --debug for the traceback, and report it."
    )


def _own(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()

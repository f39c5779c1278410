"""Runs the program of a request: a file, a module, the text of standard input, tests, a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irscope.errors import RecordingError
from irscope.record.compile.watched_compile import Watch
from irscope.record.process.events import Note, ScriptEnd
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.files import as_python_would, import_file, import_module, module_of, run_file, run_module
from irscope.record.programs.scratch import working_folder
from irscope.record.programs.texts import as_main, compiled, with_text

__all__ = ["import_program", "run_program"]


def run_program(watch: Watch) -> ScriptEnd:
    """Run the program of a request to its end; raises what it raises, and RecordingError if it cannot be run."""
    request = watch.request
    match request.way:
        case "file":
            try:
                run_file(Path(request.path), request.arguments)
            except ImportError:
                parts, root = module_of(Path(request.path))
                if len(parts) > 1:
                    name = ".".join(parts)
                    watch.report(Note(f"The file is a module of a package: in {root}, irscope dump -m {name} runs it."))
                raise
        case "module":
            run_module(request.path, request.arguments)
        case "stdin":
            with as_python_would("-", request.arguments, working_folder()), as_main(request.path) as main:
                with_text(request.path, request.text)
                exec(compiled(request.text, request.path), vars(main))
        case "tests":
            from irscope.record.programs.tests import run_tests

            with as_python_would("pytest", request.arguments, working_folder()):
                return run_tests(watch)
        case "notebook":
            from irscope.record.programs.notebook import run_notebook

            with as_python_would(request.path, request.arguments, Path(request.path).parent):
                run_notebook(watch)
        case "command":
            raise RecordingError("a command is run by a process of its own.")
    return ScriptEnd()


def import_program(request: RecordRequest) -> dict[str, Any]:
    """The namespace of the file or module that a request names, without what is under `__name__ == "__main__"`."""
    return import_module(request.path) if request.way == "module" else import_file(Path(request.path))

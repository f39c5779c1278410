"""Lets a Python process of a recorded program take part in the recording; Python imports it when it starts.

Its folder stands first in `PYTHONPATH` while the program runs, and leaves `sys.path` at once. A `sitecustomize` of the
user's own is imported in its place. Nothing here, or in what it imports, may stop the program; and it does little, as
most processes import no Triton.
"""

import os
import sys

_WATCHED = ("triton", "torch")


class _FirstImport:
    """A finder that calls `action()` once, after the first of the watched modules is imported with all under way."""

    def __init__(self, action):
        self._action = action
        self._under_way = 0

    def find_spec(self, fullname, path, target=None):
        if fullname not in _WATCHED:
            return None
        from irscope.record.triton.patches import spec_then

        self._under_way += 1
        return spec_then(fullname, self, self._done)  # type: ignore[arg-type]

    def _done(self, _):
        self._under_way -= 1
        if self._under_way == 0 and (action := self._action) is not None:
            self._action = None
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            action()


def _take_part():
    """Record this process from its first import of Triton or torch on."""
    folder = os.environ.get("IRSCOPE_PROGRAM")
    if not folder or sys.version_info < (3, 10) or not os.path.exists(os.path.join(folder, "socket")):
        return
    import importlib.util
    from pathlib import Path

    # irscope need not be installed for this Python, and what lies beside it must not be found.
    package = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "__init__.py")
    if "irscope" not in sys.modules:
        spec = importlib.util.spec_from_file_location("irscope", os.path.normpath(package))
        if spec is None or spec.loader is None:
            return
        sys.modules["irscope"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    from irscope.record.process.own_folder import DRY_VARIABLE

    if real := os.environ.get(DRY_VARIABLE):
        from irscope.record.programs.running import refuse_writes

        refuse_writes(Path(real))

    def join():
        from irscope.record.programs.joining import join

        join(Path(folder))

    sys.meta_path.insert(0, _FirstImport(join))


def _import_users_own():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", own)


try:
    _take_part()
except Exception as _error:
    print(f"irscope: this process is not recorded: {type(_error).__name__}: {_error}", file=sys.stderr)
_import_users_own()

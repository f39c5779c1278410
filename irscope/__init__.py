"""irscope: what the Triton compiler did to a GPU kernel, stage by stage and pass by pass.

>>> import irscope
>>> capture = irscope.load("matmul.irscope")     # anywhere, with neither Triton nor torch
>>> print(capture.ttgir)
>>> capture = irscope.record("examples/matmul.py", target="cuda:90")
>>> print(irscope.diff(capture, irscope.load("other.irscope")).resources)
>>> with irscope.capture() as recording:         # around launches in one's own process
...     kernel[grid](x, y, n)
>>> recording[0].ptx
>>> irscope.listen("seen")                       # in a server: what it compiles from now on, until close()
>>> with irscope.recording_session():            # many recordings, without starting Triton for each
...     captures = [irscope.record("matmul.py", target=target) for target in ("cuda:80", "cuda:90")]
>>> irscope.table(captures)                      # a list of dicts, for pandas
>>> irscope.why(capture)                         # findings and fixes; a notebook shows each result as HTML
>>> irscope.layout(capture, "#mma")
>>> irscope.check(capture, max_registers=128, min_width={"tl.load": 128}).passed
>>> irscope.sweep(capture, {"num_warps": [2, 8]})
>>> irscope.report(captures, "report.html")
>>> irscope.reproduce(capture).text

PYTEST_DONT_REWRITE: in a recording of tests irscope is imported before pytest, which would warn of it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Capture",
    "IrscopeError",
    "PassPlan",
    "PassRule",
    "Target",
    "__version__",
    "capture",
    "check",
    "diff",
    "findings",
    "layout",
    "listen",
    "load",
    "meaning",
    "predict",
    "record",
    "record_all",
    "recording_session",
    "report",
    "reproduce",
    "safety",
    "safety_for_all_arguments",
    "same_bits",
    "save",
    "sweep",
    "table",
    "time",
    "to_dict",
    "verdict",
    "why",
]

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature

    from irscope.analysis.resources import table
    from irscope.api import (
        capture,
        check,
        diff,
        findings,
        layout,
        listen,
        meaning,
        record,
        record_all,
        recording_session,
        report,
        reproduce,
        safety,
        safety_for_all_arguments,
        same_bits,
        sweep,
        to_dict,
        why,
    )
    from irscope.api.better import verdict
    from irscope.api.timing import predict, time
    from irscope.errors import IrscopeError
    from irscope.model.capture import Capture, Target
    from irscope.plan import PassPlan, PassRule
    from irscope.store.file import load, save

# All others are in `irscope.api`.
_HOMES = {
    "IrscopeError": "irscope.errors",
    "PassPlan": "irscope.plan",
    "PassRule": "irscope.plan",
    "Target": "irscope.target",
    "predict": "irscope.api.timing",
    "table": "irscope.analysis.resources",
    "time": "irscope.api.timing",
    "verdict": "irscope.api.better",
}


class _CallablePackage(ModuleType):
    """A package, such as `irscope.record`, whose name is also that of a function of `irscope.api`: it may be called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(*args, **options)

    @property
    def _function(self) -> Callable[..., Any]:
        return getattr(import_module("irscope.api"), self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Signature:
        return import_module("inspect").signature(self._function)


for _name in ("record", "layout"):
    import_module(f"irscope.{_name}").__class__ = _CallablePackage


def __getattr__(name: str) -> Any:
    # Imported when first asked for: the command line must start fast.
    if name not in __all__:
        raise AttributeError(f"module 'irscope' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "irscope.api")), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic `%%irscope`."""
    # It says how a notebook displays a capture.
    import_module("irscope.api")
    import_module("irscope.record.programs.in_process").register(shell)


def __dir__() -> list[str]:
    return sorted(__all__)

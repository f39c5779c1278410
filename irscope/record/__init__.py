"""Recording: everything that needs Triton, in a process of its own."""

from __future__ import annotations

from irscope.callable_module import make_callable

make_callable(__name__)

"""The lines of Python that a capture holds."""

from __future__ import annotations

from irscope.model.capture import Capture

__all__ = ["python_line"]


def python_line(capture: Capture, file: str, line: int) -> str:
    """A line of Python, 1-based; empty if the capture does not hold it."""
    kernel = capture.launch.kernel
    texts = {one.path: one.text for one in capture.sources}
    # A capture of a signature holds the kernel's own text alone.
    texts.setdefault(kernel.file, "\n" * max(0, (kernel.first_line or kernel.line) - 1) + kernel.source)
    lines = texts.get(file, "").split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""

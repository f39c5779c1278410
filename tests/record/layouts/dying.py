"""As the child process that asks the hardware, without one: it dies of a type called `deadly`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from irscope.record.process.annotations import Measure, Measured
from irscope.record.process.messages import serve_parent


def serve(questions: Iterator[Measure], send: Callable[[Measured], None]) -> None:
    """Answer with an element's own number."""
    for question in questions:
        if question.type == "deadly":
            print("deadly", flush=True)
            os._exit(3)
        send(Measured(tuple(range(question.shape[0]))) if question.type == "good" else Measured(error=question.type))


if __name__ == "__main__":
    sys.exit(serve_parent(int(sys.argv[1]), serve))

"""The child process that asks the compiler for layouts: questions on standard input, messages on standard output.

`python -m irscope.record.layouts.query`, or a fork of a process that has Triton loaded. The lines are those of
`irscope.record.layouts.protocol`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from irscope.errors import MissingTool
from irscope.layout.rows import layout_rows, module_numbers, type_of_row
from irscope.model.layout import LayoutAnswer, LayoutRefusal
from irscope.record.layouts.protocol import Message, Question

if TYPE_CHECKING:
    from irscope.record.layouts.compiler import LayoutCompiler


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the questions end."""

    @cache
    def compiler() -> LayoutCompiler:
        from irscope.record.layouts.compiler import LayoutCompiler

        return LayoutCompiler()

    for line in questions:
        question = Question.from_line(line)

        def tell(_job: int = question.job, **fields: Any) -> None:
            answers.write(Message(_job, **fields).to_line())
            # Flushed at once: what comes next may end the process.
            answers.flush()

        refusal = None
        try:
            _answer(question, compiler, tell)
        except (ImportError, MissingTool) as error:
            refusal = LayoutRefusal("no-triton", f"{type(error).__name__}: {error}")
        except Exception as error:
            refusal = LayoutRefusal("unasked", f"{type(error).__name__}: {error}")
        tell(state="end", answer=refusal)


def _answer(question: Question, make_compiler: Callable[[], LayoutCompiler], tell: Callable[..., None]) -> None:
    module, types = question.module, question.types
    if question.text is not None:
        rows = layout_rows(question.text)
        tell(state="rows", rows=rows)
        types = tuple(map(type_of_row, rows))
        numbers = module_numbers(question.text)
        module = replace(module, **{name: numbers[key] for name, key in _ATTRIBUTES.items() if key in numbers})
    if not types and not question.pairs:
        return
    compiler = make_compiler()
    compiler.set_module(module)
    if question.pairs:
        tell(state="conflicts", conflicts=compiler.conflicts(question.pairs))
        return

    def each(index: int, answer: LayoutAnswer | None) -> None:
        tell(state="begin" if answer is None else "answer", index=index, answer=answer)

    compiler.answers(types, each)


_ATTRIBUTES = {"warp_size": "threads-per-warp", "num_warps": "num-warps", "num_ctas": "num-ctas"}


def main() -> None:
    """Serve standard input until it ends; the process then ends at once, without what the compiler prints at exit."""
    answers = os.fdopen(os.dup(1), "wb")
    # What the compiler prints must not stand between the answers.
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""`python -m irscope.record.layouts.query FD`: asks the compiler for the layouts of the questions on the socket FD.

A fork of a process that has Triton loaded calls `serve` instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from irscope.errors import MissingTool
from irscope.layout.rows import layout_rows, module_numbers, type_of_row
from irscope.model.layout import LayoutAnswer, LayoutRefusal
from irscope.record.process.layout_server import Message, Question
from irscope.record.process.messages import serve_parent

if TYPE_CHECKING:
    from irscope.record.layouts.compiler import LayoutCompiler

_ATTRIBUTES = {"warp_size": "threads-per-warp", "num_warps": "num-warps", "num_ctas": "num-ctas"}


def serve(descriptor: int) -> int:
    """Answer the questions that come through a socket, until they end; returns the exit code."""
    return serve_parent(descriptor, (Question,), _serve)


def _serve(questions: Iterator[Question], send: Callable[[Message], None]) -> None:
    @cache
    def compiler() -> LayoutCompiler:
        from irscope.record.layouts.compiler import LayoutCompiler

        return LayoutCompiler()

    for question in questions:
        refusal = None
        try:
            _answer(question, compiler, send)
        except (ImportError, MissingTool) as error:
            refusal = LayoutRefusal("no-triton", f"{type(error).__name__}: {error}")
        except Exception as error:
            refusal = LayoutRefusal("unasked", f"{type(error).__name__}: {error}")
        send(Message(question.job, "end", answer=refusal))


def _answer(question: Question, make_compiler: Callable[[], LayoutCompiler], send: Callable[[Message], None]) -> None:
    module, types = question.module, question.types
    message = partial(Message, question.job)
    if question.text is not None:
        rows = layout_rows(question.text)
        send(message("rows", rows=rows))
        types = tuple(map(type_of_row, rows))
        numbers = module_numbers(question.text)
        module = replace(module, **{name: numbers[key] for name, key in _ATTRIBUTES.items() if key in numbers})
    if not types and not question.pairs:
        return
    compiler = make_compiler()
    compiler.set_module(module)
    if question.pairs:
        send(message("conflicts", conflicts=tuple(compiler.conflicts(question.pairs))))
        return

    def report(index: int, answer: LayoutAnswer | None) -> None:
        send(message("begin" if answer is None else "answer", index, answer=answer))

    compiler.answers(types, report)


if __name__ == "__main__":
    # At once, without what the compiler prints at exit.
    os._exit(serve(int(sys.argv[1])))

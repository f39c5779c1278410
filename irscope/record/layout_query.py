"""The child that asks the compiler for layouts: a question a line on standard input, answers on standard output.

`python -m irscope.record.layout_query`, or a fork of a process that has Triton loaded. A question is
`{"job": 1, "target": "cuda:90", "warp_size": 32, "num_warps": 4, "num_ctas": 1}` with either `types` or `text` (a whole
module; `pairs` beside `types` asks for bank conflicts). The answers name the job: `rows` (of a text), then `begin` and
`answer` for each type, then `end`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO

from irscope.layout.rows import layout_rows, module_numbers


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the questions end."""
    compilers: list[Any] = []
    for line in questions:
        question = json.loads(line)
        job = question["job"]

        def tell(_job: int = job, **fields: Any) -> None:
            answers.write(json.dumps({"job": _job, **fields}).encode() + b"\n")
            # Flushed at once: what comes next may end the process.
            answers.flush()

        try:
            _answer(question, tell, compilers)
        except Exception as error:
            tell(state="end", reason=f"{type(error).__name__}: {error}")
        else:
            tell(state="end")


def _answer(question: dict[str, Any], tell: Any, compilers: list[Any]) -> None:
    types = question.get("types")
    numbers: dict[str, int] = {}
    if types is None:
        rows = layout_rows(question["text"])
        numbers = module_numbers(question["text"])
        types = [row["type"] for row in rows]
        tell(state="rows", rows=rows)
    if not types:
        return
    if not compilers:
        from irscope.record.layout_compiler import LayoutCompiler

        compilers.append(LayoutCompiler())

    def each(index: int, answer: Any) -> None:
        if answer is None:
            tell(state="begin", index=index)
        else:
            tell(state="answer", index=index, answer=answer)

    compilers[0].set_module(
        question["target"],
        numbers.get("threads-per-warp", question["warp_size"]),
        numbers.get("num-warps", question["num_warps"]),
        numbers.get("num-ctas", question["num_ctas"]),
    )
    if question.get("pairs"):
        # Each pair stands as two types, one after the other; the count is the answer of the first.
        counts = compilers[0].conflicts(list(zip(types[::2], types[1::2], strict=True)))
        for index, count in enumerate(counts):
            each(2 * index, {"conflicts": count})
        return
    compilers[0].answers(types, each)


def main() -> None:
    """Serve standard input until it ends; the process ends at once then, without the compiler's farewell notes."""
    answers = os.fdopen(os.dup(1), "wb")
    # What the compiler prints must not stand between the answers.
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

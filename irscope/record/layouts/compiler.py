"""Asks the installed compiler for the linear layout of a type. Wrong input may abort the process: run it in a child.

`python -m irscope.record.layouts.compiler FD` answers the questions on the socket FD. Tried on Triton 3.6, 3.7, 3.8 and
3.9.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import Any

from irscope.errors import MissingTool
from irscope.ir.mlir.attributes import Encoding, parse_encoding
from irscope.ir.mlir.types import Type, read_types
from irscope.model.layout import LayoutAnswer, LayoutMap, LayoutRefusal, LinearLayout
from irscope.record.process.annotations import Message, Module, Question
from irscope.record.process.messages import serve_parent
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import minor_of, triton_version


class LayoutCompiler:
    def __init__(self) -> None:
        triton_api.require_triton()
        self._version = minor_of(triton_version())
        self._context = triton_api.new_context()
        self._attributes = ""
        self._modules: list[Any] = []
        self._diagnostics = ""
        self._known: dict[tuple[str, str], LayoutAnswer] = {}

    def set_module(self, module: Module) -> None:
        """Set the attributes of the module around the types that are asked about next."""
        self._attributes = (
            f'"ttg.num-ctas" = {module.num_ctas} : i32, "ttg.num-warps" = {module.num_warps} : i32, '
            f'ttg.target = "{module.target}", "ttg.threads-per-warp" = {module.warp_size} : i32'
        )

    def answers(self, types: Sequence[str], report: Callable[[int, LayoutAnswer | None], None]) -> None:
        """For each type, `report(index, None)` before what may end the process, then `report(index, answer)`."""
        # The variants of an autotuned kernel share most of their layouts.
        fresh = [text for text in types if (text, self._attributes) not in self._known and _is_known(text)]
        arguments = dict(zip(fresh, self._arguments(fresh) or (), strict=False)) if fresh else {}
        for index, text in enumerate(types):
            key = (text, self._attributes)
            if key not in self._known:
                report(index, None)
                self._known[key] = self._answer(text, arguments.get(text))
            report(index, self._known[key])

    def gluon_layout(self, text: str) -> Any:
        """The layout of a type as Gluon's own object, for kernels; raises ValueError if the type can't be read."""
        arguments = self._arguments([text])
        if not arguments:
            raise ValueError(f"the compiler cannot parse {text}{self._diagnostics}")
        return self._gluon(text, arguments[0])

    def _gluon(self, text: str, value: Any) -> Any:
        if text.startswith("tensor"):
            return self._builder.get_gluon_layout_from_tensor(value)
        return self._builder.get_gluon_layout_from_memdesc(value)

    def conflicts(self, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
        """As `bank_conflicts` has them. Aborts on AMD in 3.8 and later, and on padded layouts in any version."""
        counts: list[int | None] = []
        for registers, shared in pairs:
            arguments = self._arguments([registers, shared])
            if not arguments:
                counts.append(None)
                continue
            (kind,) = read_types(registers)
            layouts = [self._gluon(text, value) for text, value in zip((registers, shared), arguments, strict=True)]
            # 3.8 and later look up the module around the insertion point, and crash if there is none.
            self._builder.set_insertion_point_to_start(self._entry[0])
            attributes = [layout._to_ir(self._builder) for layout in layouts]
            count = self._builder.get_shared_bank_conflicts(*attributes, list(kind.shape), kind.element_bits)
            counts.append(int(count))
        return counts

    def _answer(self, text: str, argument: Any) -> LayoutAnswer:
        try:
            (kind,) = read_types(text)
            encoding = parse_encoding(kind.encoding)
            if encoding.space == "unknown":
                return LayoutRefusal(
                    "unknown-encoding", f"irscope has no rule for where {encoding.name} puts its elements"
                )
            if any(size < 1 or size & (size - 1) for size in kind.shape):
                sizes = "×".join(map(str, kind.shape))
                return LayoutRefusal(
                    "shape", f"the shape {sizes} has a size that is not a power of two, and linear layouts need one"
                )
            if encoding.space == "shared" and not any(size > 1 for size in kind.shape):
                # One element: no basis at all, which the compiler's own class refuses.
                return _map({"offset": (), "block": ()}, kind.shape)
            if argument is None:
                arguments = self._arguments([text])
                if not arguments:
                    return LayoutRefusal("unreadable", f"the compiler cannot parse this type{self._diagnostics}")
                argument = arguments[0]
            return self._ask(encoding, kind, argument)
        except Exception as error:
            return LayoutRefusal("error", f"the compiler says: {error}")

    def _arguments(self, types: Sequence[str]) -> list[Any] | None:
        named = ", ".join(f"%arg{index}: {text}" for index, text in enumerate(types))
        source = (
            f"module attributes {{{self._attributes}}} {{\n  tt.func public @f({named}) {{\n    tt.return\n  }}\n}}\n"
        )
        before = _log_size()
        try:
            module = triton_api.parse_text(source, self._context, parent_of_temporaries())
        except Exception:
            self._diagnostics = _log_since(before)
            return None
        self._modules.append(module)
        function = module.get_function("f")
        self._builder = triton_api.layout_builder(self._context)
        self._entry: list[Any] = []
        module.walk(lambda op: self._entry.append(op.get_block()) if op.get_name() == "tt.return" else None)
        return [function.args(index) for index in range(len(types))]

    def _ask(self, encoding: Encoding, kind: Type, value: Any) -> LayoutAnswer:
        shape = list(kind.shape)
        if encoding.space == "registers":
            layout = self._builder.get_gluon_layout_from_tensor(value)
            if encoding.kind == "generic_linear":
                # to_linear_layout aborts if the bases are not a distributed layout; the layout has them anyway.
                return _register_map(layout, shape)
            return _register_map(self._linear(layout, shape), shape)
        if encoding.space == "tensor":
            return self._ask_tensor_memory(encoding, shape, value)
        if encoding.kind == "padded_shared":
            layout = self._builder.get_gluon_layout_from_memdesc(value)
            # The field of the CTAs' bases is block_bases in 3.6, cga_layout later.
            blocks = layout.block_bases if hasattr(layout, "block_bases") else layout.cga_layout
            return _map({"offset": layout.offset_bases, "block": blocks}, shape, layout.interval_padding_pairs)
        if self._version < (3, 7) or encoding.kind == "amd_rotating_shared":
            return self._ask_by_reshape(shape, value)
        note = "offsets are within a partition: the compiler drops the bases that choose the partition"
        linear = self._linear(self._builder.get_gluon_layout_from_memdesc(value), shape)
        rows = {"offset": linear.offset_bases, "block": linear.block_bases}
        return _map(rows, shape, note=note if encoding.kind == "partitioned_shared" else "")

    def _linear(self, layout: Any, shape: list[int]) -> Any:
        return self._builder.to_linear_layout(layout._to_ir(self._builder), shape)

    def _ask_tensor_memory(self, encoding: Encoding, shape: list[int], value: Any) -> LayoutAnswer:
        if self._version < (3, 7):
            version = ".".join(map(str, self._version))
            return LayoutRefusal("unsupported", f"Triton {version} gives no map of tensor memory: 3.7 and later do")
        if encoding.kind != "tensor_memory_encoding":
            return LayoutRefusal("unsupported", "the compiler gives no map for the layout of scales in tensor memory")
        linear = self._linear(self._builder.get_gluon_layout_from_memdesc(value), shape)
        return _map({"row": linear.rows, "column": linear.cols}, shape)

    def _ask_by_reshape(self, shape: list[int], value: Any) -> LayoutAnswer:
        """For memory layouts in 3.6, which aborts on them, and the rotating one: in one dimension they are linear."""
        self._builder.set_insertion_point_to_start(self._entry[0])
        flat = self._builder.get_gluon_layout_from_memdesc(self._builder.create_memdesc_reshape(value, [prod(shape)]))
        rows = {"offset": flat.offset_bases, "block": flat.block_bases}
        whole = LinearLayout.of({}, shape)
        return _map({name: [whole.unflatten(vector[0]) for vector in vectors] for name, vectors in rows.items()}, shape)


def _is_known(text: str) -> bool:
    """Whether a type can be asked about; one that can't be read would spoil those that are asked with it."""
    return any(parse_encoding(kind.encoding).space != "unknown" for kind in read_types(text))


def _log_size() -> int:
    try:
        return os.fstat(2).st_size
    except OSError:
        return 0


def _log_since(offset: int) -> str:
    """The errors that MLIR has printed on standard error since then, if that is a file."""
    try:
        text = os.pread(2, 1 << 16, offset).decode("utf-8", "replace")
    except OSError:
        return ""
    errors = [line.partition("error: ")[2].strip() for line in text.splitlines() if "error: " in line]
    return f": {'; '.join(dict.fromkeys(filter(None, errors)))}" if errors else ""


def _map(
    rows: Mapping[str, Any], shape: Sequence[int], padding: Sequence[tuple[int, int]] = (), note: str = ""
) -> LayoutMap:
    pairs = tuple((int(interval), int(length)) for interval, length in padding)
    return LayoutMap(LinearLayout.of(rows, shape), pairs, note)


def _register_map(layout: Any, shape: Sequence[int]) -> LayoutMap:
    return _map({name: getattr(layout, f"{short}_bases") for name, short in _REGISTER_INPUTS.items()}, shape)


_REGISTER_INPUTS = {"register": "reg", "lane": "lane", "warp": "warp", "block": "block"}


def _serve(questions: Iterator[Question], send: Callable[[Message], None]) -> None:
    @cache
    def compiler() -> LayoutCompiler:
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
    message = partial(Message, question.job)
    compiler = make_compiler()
    compiler.set_module(question.module)
    if question.pairs:
        send(message("conflicts", conflicts=tuple(compiler.conflicts(question.pairs))))
        return

    def report(index: int, answer: LayoutAnswer | None) -> None:
        send(message("begin" if answer is None else "answer", index, answer=answer))

    compiler.answers(question.types, report)


if __name__ == "__main__":
    # At once, without what the compiler prints at exit.
    os._exit(serve_parent(int(sys.argv[1]), _serve))

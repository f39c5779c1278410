"""Asks the installed compiler for the linear layout of a type. Wrong input may abort the process: run it in a child.

Tried on Triton 3.6, 3.7, 3.8 and 3.9.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from irscope.layout.encoding import Encoding, parse_encoding
from irscope.layout.types import LayoutType, read_types
from irscope.record import triton_api
from irscope.record.own_folder import parent_of_temporaries

Answer = dict[str, Any]
"""`bases` and `out_dims` (see LinearLayout.from_json), perhaps `padding` and `note`; or `reason`."""


class LayoutCompiler:
    """One MLIR context with every dialect, and what was asked of it."""

    def __init__(self) -> None:
        triton = triton_api.require_triton()
        library = triton._C.libtriton
        self._ir, self._gluon = library.ir, library.gluon_ir
        self._version = tuple(int(part) for part in triton.__version__.split(".")[:2])
        self._context = self._ir.context()
        self._ir.load_dialects(self._context)
        library.nvidia.load_dialects(self._context)
        library.amd.load_dialects(self._context)
        self._attributes = ""
        self._modules: list[Any] = []
        self._said = ""
        self._known: dict[tuple[str, str], Answer] = {}

    def set_module(self, target: str, warp_size: int, num_warps: int, num_ctas: int) -> None:
        """What the module around the next questions says of itself."""
        self._attributes = (
            f'"ttg.num-ctas" = {num_ctas} : i32, "ttg.num-warps" = {num_warps} : i32, '
            f'ttg.target = "{target}", "ttg.threads-per-warp" = {warp_size} : i32'
        )

    def answers(
        self,
        types: Sequence[str],
        tell: Callable[[int, Answer | None], None],
    ) -> None:
        """Ask for each type: `tell(index, None)` before a question that may end the process, `tell(index, answer)`."""
        # The variants of an autotuned kernel share most of their layouts.
        fresh = [text for text in types if (text, self._attributes) not in self._known and _is_known(text)]
        arguments = dict(zip(fresh, self._arguments(fresh) or (), strict=False)) if fresh else {}
        for index, text in enumerate(types):
            key = (text, self._attributes)
            if key not in self._known:
                tell(index, None)
                self._known[key] = self._answer(text, arguments.get(text))
            tell(index, self._known[key])

    def gluon_layout(self, text: str) -> Any:
        """The layout of a type as Gluon's own object, for kernels; raises ValueError where the type can't be read."""
        arguments = self._arguments([text])
        if not arguments:
            raise ValueError(f"the compiler does not read {text}{self._said}")
        if text.startswith("tensor"):
            return self._builder.get_gluon_layout_from_tensor(arguments[0])
        return self._builder.get_gluon_layout_from_memdesc(arguments[0])

    def conflicts(self, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
        """The compiler's own count for each (type in registers, type in shared memory): wavefronts of one access above
        one; None where it can't be asked. Aborts on AMD targets in 3.8 and later, and on padded layouts in any version.
        """
        counts: list[int | None] = []
        for registers, shared in pairs:
            arguments = self._arguments([registers, shared])
            if not arguments:
                counts.append(None)
                continue
            (kind,) = read_types(registers)
            layouts = (
                self._builder.get_gluon_layout_from_tensor(arguments[0]),
                self._builder.get_gluon_layout_from_memdesc(arguments[1]),
            )
            # 3.8 and later look up the module around the builder's place, and crash where there is none.
            self._builder.set_insertion_point_to_start(self._entry[0])
            attributes = [layout._to_ir(self._builder) for layout in layouts]
            counts.append(
                int(self._builder.get_shared_bank_conflicts(*attributes, list(kind.shape), kind.element_bits))
            )
        return counts

    def _answer(self, text: str, argument: Any) -> Answer:
        try:
            (kind,) = read_types(text)
            encoding = parse_encoding(kind.encoding)
            if encoding.space == "unknown":
                return {
                    "reason": f"irscope does not know what {encoding.name} spreads its elements over",
                    "unread": True,
                }
            if any(size < 1 or size & (size - 1) for size in kind.shape):
                sizes = "×".join(map(str, kind.shape))
                return {
                    "reason": f"the shape {sizes} has a size that is no power of two, and linear layouts have only such"
                }
            if encoding.space == "shared" and not any(size > 1 for size in kind.shape):
                # One element: no basis at all, which the compiler's own class refuses.
                return _bases({"offset": [], "block": []}, kind.shape)
            if argument is None:
                arguments = self._arguments([text])
                if not arguments:
                    return {"reason": f"the compiler does not read this type{self._said}", "unread": True}
                argument = arguments[0]
            return self._ask(encoding, kind, argument)
        except Exception as error:
            return {"reason": f"the compiler says: {error}"}

    def _arguments(self, types: Sequence[str]) -> list[Any] | None:
        """A value of each type: the arguments of a function that is made for it. None where the types can't be read."""
        named = ", ".join(f"%arg{index}: {text}" for index, text in enumerate(types))
        source = (
            f"module attributes {{{self._attributes}}} {{\n  tt.func public @f({named}) {{\n    tt.return\n  }}\n}}\n"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".ttgir", dir=parent_of_temporaries()) as file:
            file.write(source)
            file.flush()
            before = _log_size()
            try:
                module = triton_api.parse_module(Path(file.name), self._context)
            except Exception:
                self._said = _log_since(before)
                return None
        self._modules.append(module)
        function = module.get_function("f")
        self._builder = self._gluon.GluonOpBuilder(self._context)
        self._entry: list[Any] = []
        module.walk(lambda op: self._entry.append(op.get_block()) if op.get_name() == "tt.return" else None)
        return [function.args(index) for index in range(len(types))]

    def _ask(self, encoding: Encoding, kind: LayoutType, value: Any) -> Answer:
        shape = list(kind.shape)
        if encoding.space == "registers":
            layout = self._builder.get_gluon_layout_from_tensor(value)
            if encoding.kind == "generic_linear":
                # to_linear_layout aborts where the bases are no distributed layout; the layout holds them all the same.
                return _register_bases(layout, shape)
            return _register_bases(self._linear(layout, shape), shape)
        if encoding.space == "tensor":
            return self._ask_tensor_memory(encoding, shape, value)
        if encoding.kind == "padded_shared":
            return _padded(self._builder.get_gluon_layout_from_memdesc(value), shape)
        if self._version < (3, 7) or encoding.kind == "amd_rotating_shared":
            return self._ask_by_reshape(shape, value)
        answer = _offset_bases(self._linear(self._builder.get_gluon_layout_from_memdesc(value), shape), shape)
        if encoding.kind == "partitioned_shared":
            answer["note"] = "offsets are within a partition: the compiler drops the bases that choose the partition"
        return answer

    def _linear(self, layout: Any, shape: list[int]) -> Any:
        return self._builder.to_linear_layout(layout._to_ir(self._builder), shape)

    def _ask_tensor_memory(self, encoding: Encoding, shape: list[int], value: Any) -> Answer:
        if self._version < (3, 7):
            return {
                "reason": f"Triton {'.'.join(map(str, self._version))} gives no map of tensor memory: 3.7 and later do"
            }
        if encoding.kind != "tensor_memory_encoding":
            return {"reason": "the compiler gives no map for the layout of scales in tensor memory"}
        linear = self._linear(self._builder.get_gluon_layout_from_memdesc(value), shape)
        return _bases({"row": linear.rows, "column": linear.cols}, shape)

    def _ask_by_reshape(self, shape: list[int], value: Any) -> Answer:
        """3.6 aborts on memory layouts, and none knows the rotating one: reshaped to one dimension they are linear."""
        number = 1
        for size in shape:
            number *= size
        self._builder.set_insertion_point_to_start(self._entry[0])
        flat = self._builder.get_gluon_layout_from_memdesc(self._builder.create_memdesc_reshape(value, [number]))
        rows = {"offset": flat.offset_bases, "block": flat.block_bases}
        split = {name: [_split(vector[0], shape) for vector in vectors] for name, vectors in rows.items()}
        return _bases(split, shape)


def _is_known(text: str) -> bool:
    """Whether a type is worth a question; one that can't be read would spoil those that are asked with it."""
    return any(parse_encoding(kind.encoding).space != "unknown" for kind in read_types(text))


def _log_size() -> int:
    try:
        return os.fstat(2).st_size
    except OSError:
        return 0


def _log_since(offset: int) -> str:
    """What MLIR has said of an error on standard error, where that is a file."""
    try:
        text = os.pread(2, 1 << 16, offset).decode("utf-8", "replace")
    except OSError:
        return ""
    said = [line.partition("error: ")[2].strip() for line in text.splitlines() if "error: " in line]
    return f": {'; '.join(dict.fromkeys(filter(None, said)))}" if said else ""


def _split(index: int, shape: Sequence[int]) -> list[int]:
    parts: list[int] = []
    for size in reversed(shape):
        parts.append(index % size)
        index //= size
    return parts[::-1]


def _bases(rows: dict[str, Any], shape: Sequence[int]) -> Answer:
    return {
        "bases": {name: [list(vector) for vector in vectors] for name, vectors in rows.items()},
        "out_dims": [[f"dim{index}", size] for index, size in enumerate(shape)],
    }


def _register_bases(layout: Any, shape: Sequence[int]) -> Answer:
    rows = {
        "register": layout.reg_bases,
        "lane": layout.lane_bases,
        "warp": layout.warp_bases,
        "block": layout.block_bases,
    }
    return _bases(rows, shape)


def _offset_bases(layout: Any, shape: Sequence[int]) -> Answer:
    return _bases({"offset": layout.offset_bases, "block": layout.block_bases}, shape)


def _padded(layout: Any, shape: Sequence[int]) -> Answer:
    # The field of the CTAs' bases is block_bases in 3.6, cga_layout later.
    blocks = layout.block_bases if hasattr(layout, "block_bases") else layout.cga_layout
    answer = _bases({"offset": layout.offset_bases, "block": blocks}, shape)
    answer["padding"] = [list(pair) for pair in layout.interval_padding_pairs]
    return answer

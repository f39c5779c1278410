"""Symbolic sizes of a compiled function's inputs: which they are, and for which later calls its code is valid.

The rules are Dynamo's (`torch._dynamo.variables.builder._automatic_dynamic`): `dynamic=True` makes every size and
number a symbol, `dynamic=False` none; by default a size is a symbol from the second compile for which it differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import torch

from irscope.record.virtual.torch.memory import META, is_wrapper


class _SizeKind(Enum):
    CONSTANT = auto()
    SHARED = auto()
    """A symbol: one for all sizes of this kind that are equal."""
    OWN = auto()


Marks = tuple[_SizeKind, ...] | None
"""The sizes of a tensor; () for an integer that is a symbol; None for anything else, which is no input of the graph."""


class SizeHistory:
    def __init__(self, dynamic: bool | None) -> None:
        self._dynamic = dynamic
        self._compiled: dict[Any, list[list[Any]]] = {}

    def marks(self, leaves: Sequence[Any], layout: Any, constant: int) -> list[Marks]:
        """The marks of each input of the next compile, which is added to the history.

        `constant`: how many of the first inputs are a module's own tensors, whose sizes are constants.
        """
        calls = self._compiled.setdefault(str(layout), [])
        marks: list[Marks] = []
        for place, leaf in enumerate(leaves):
            before = [call[place] for call in calls]
            marks.append(constant_marks(leaf) if place < constant else self.mark(leaf, before))
        calls.append([_seen(leaf) for leaf in leaves])
        return marks

    def mark(self, leaf: Any, before: Sequence[Any] = ()) -> Marks:
        """The marks of one input; `before`: its sizes in the earlier compiles."""
        if type(leaf) is int:
            is_symbol = self._all or (self._automatic and any(number != leaf for number in before))
            return () if is_symbol else None
        if not isinstance(leaf, torch.Tensor):
            return None
        if isinstance(leaf, torch.nn.Parameter):
            return constant_marks(leaf)
        earlier = [sizes for sizes in before if isinstance(sizes, tuple) and len(sizes) == leaf.dim()]
        return tuple(
            self._size(leaf, axis, any(sizes[axis] != size for sizes in earlier))
            for axis, size in enumerate(leaf.shape)
        )

    def _size(self, tensor: torch.Tensor, axis: int, varies: bool) -> _SizeKind:
        if axis in marked_axes(tensor) or axis in vars(tensor).get("_dynamo_weak_dynamic_indices", ()):
            return _SizeKind.OWN
        if axis in vars(tensor).get("_dynamo_static_indices", ()):
            return _SizeKind.CONSTANT
        if varies and self._automatic:
            return _SizeKind.OWN
        return _SizeKind.SHARED if self._all else _SizeKind.CONSTANT

    @property
    def _all(self) -> bool:
        if self._dynamic is not None:
            return self._dynamic
        from torch._dynamo import config

        return not config.assume_static_by_default

    @property
    def _automatic(self) -> bool:
        if self._dynamic is not None:
            return self._dynamic
        from torch._dynamo import config

        return bool(config.automatic_dynamic_shapes)


def marked_axes(value: Any) -> frozenset[int]:
    """The sizes that a program made symbols by `torch._dynamo.mark_dynamic`."""
    return frozenset(vars(value).get("_dynamo_dynamic_indices", ())) if isinstance(value, torch.Tensor) else frozenset()


def _seen(leaf: Any) -> Any:
    """The sizes of a tensor for the next compiles: a marked one differs from any other, and stays a symbol."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    marked = marked_axes(leaf)
    return tuple(None if axis in marked else size for axis, size in enumerate(leaf.shape))


class Symbols:
    def __init__(self) -> None:
        from torch._subclasses import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self._shapes = ShapeEnv()
        self.fake = FakeTensorMode(shape_env=self._shapes)
        self._inputs: list[Any] = []
        self._guards: tuple[int, str] = (-1, "")

    def input_of(self, value: Any, marks: Marks, device: torch.device) -> Any:
        """The next input of the graph: a fake tensor, or a number. A size of 0 or 1 is no symbol, as in Dynamo."""
        from torch._dynamo.source import LocalSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        source = LocalSource(f"t{len(self._inputs)}")
        if isinstance(value, torch.Tensor):
            if is_wrapper(value):
                raise NotImplementedError(f"an input is a {type(value).__name__}, which wraps other tensors")
            made = self._tensor(value, marks, source, device)
        else:
            made = self._shapes.create_unspecified_symint_and_symbol(value, source, DimDynamic.DYNAMIC)
        self._inputs.append(made)
        return made

    def _tensor(self, tensor: torch.Tensor, marks: Marks, source: Any, device: torch.device) -> torch.Tensor:
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        kinds = {
            _SizeKind.CONSTANT: DimDynamic.STATIC,
            _SizeKind.SHARED: DimDynamic.DUCK,
            _SizeKind.OWN: DimDynamic.DYNAMIC,
        }
        context = StatelessSymbolicContext(dynamic_sizes=[kinds[mark] for mark in marks or ()])
        sizes, strides, _ = self._shapes.create_symbolic_sizes_strides_storage_offset(
            _outline(tensor), source, symbolic_context=context
        )
        with self.fake:
            return torch.empty_strided(
                sizes, strides, dtype=tensor.dtype, device=device, requires_grad=tensor.requires_grad
            )

    def hold_for(self, values: Sequence[Any]) -> bool:
        """Whether the code that was compiled with these symbols is valid for other inputs."""
        count = len(self._shapes.guards)
        if count != self._guards[0]:
            self._guards = count, self._shapes.produce_guards_expression(self._inputs, ignore_static=False) or ""
        outlines = [_outline(value) if isinstance(value, torch.Tensor) else value for value in values]
        return not self._guards[1] or self._shapes.evaluate_guards_expression(self._guards[1], outlines)


def _outline(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same sizes and strides that begins where its memory does, as the fake ones do."""
    with torch._C.DisableTorchFunction():
        return empty_as(tensor, META)


def constant_marks(leaf: Any) -> Marks:
    return (_SizeKind.CONSTANT,) * leaf.dim() if isinstance(leaf, torch.Tensor) else None


def is_symbolic(leaf: Any, marks: Marks) -> bool:
    return marks is not None and (type(leaf) is int or any(size is not _SizeKind.CONSTANT for size in marks))


def sizes_of(leaf: Any) -> Any:
    return tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf


def empty_as(tensor: torch.Tensor, device: torch.device, requires_grad: bool = False) -> torch.Tensor:
    strides, dtype = tensor.stride(), tensor.dtype
    return torch.empty_strided(tuple(tensor.shape), strides, dtype=dtype, device=device, requires_grad=requires_grad)

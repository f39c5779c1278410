"""Records the compiles of one's own process: `with irscope.capture():`, and `%%irscope` in a notebook.

    %load_ext irscope

    %%irscope captures --target hip:gfx942 -d combine
    kernel[grid](x, y, n)

Without a GPU, or with `--target` or `--virtual`, the cell has a virtual GPU of its own: tensors on it have no data, and
are of no use after the cell.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, overload

from irscope.errors import UsageError
from irscope.model.capture import Capture, SnapshotLevel
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.annotations import Annotations, LayoutServer
from irscope.record.process.assembly import Assembly
from irscope.record.process.events import Note
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.recording import DEFAULT_TARGET, SourceFiles, describe_environment, recorded_launches
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import nothing, replaced, replaced_item
from irscope.record.triton.versions import require_names, untried_note
from irscope.record.virtual.arguments import assumptions_under_way, known_values
from irscope.target import Target


class Recorded(Sequence[Capture]):
    """The captures of a `with irscope.capture()` block, in the order their compiles began."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    @overload
    def __getitem__(self, index: int) -> Capture: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Capture]: ...
    def __getitem__(self, index: int | slice) -> Capture | Sequence[Capture]:
        # Only what is asked for is put together.
        if isinstance(index, slice):
            return [self._assembly.capture(number) for number in self._assembly.numbers[index]]
        return self._assembly.capture(self._assembly.numbers[index])

    def __len__(self) -> int:
        return len(self._assembly.numbers)

    def __repr__(self) -> str:
        return f"<Recorded: {', '.join(map(repr, self._assembly.captures())) or 'nothing yet'}>"


def capture_in_process(plan: PassPlan, snapshots: SnapshotLevel) -> AbstractContextManager[Recorded]:
    """Record every compile until the end of the block, kernels that were launched before included."""
    return _captured_launches(RecordRequest(mode="script", plan=plan, snapshots=snapshots))


@contextmanager
def _captured_launches(
    request: RecordRequest, virtual: Target | None = None, origin: tuple[tuple[str, str], ...] = ()
) -> Iterator[Recorded]:
    """Record every compile until the end of the block.

    Nothing sticks: Triton's caches, on disk and in memory, are for the block alone.

    Args:
        virtual: the target of a virtual GPU for the block; None for the GPU that is there.
        origin: what the captures say of where they are from.
    """
    assembly = Assembly(request, " ".join(sys.argv))
    triton_api.require_triton()
    require_names(virtual=virtual is not None)
    target = virtual or triton_api.active_target()
    begun = describe_environment(target, real=virtual is None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="irscope-")))
        annotated = Annotations(assembly.feed, request, stack.enter_context(LayoutServer()))
        stack.callback(annotated.finish)
        annotated(begun)
        if untried := untried_note():
            annotated(Note(untried))
        watch = Watch(
            SourceFiles(annotated, request),
            request,
            assumptions=assumptions_under_way,
            values=partial(known_values, most_bytes=request.data_limit_bytes),
            origin=origin,
        )
        stack.enter_context(triton_api.private_cache(folder))
        # What was compiled before is compiled again, and what is compiled here is not found later.
        stack.enter_context(triton_api.fresh_kernels_in_memory())
        stack.enter_context(watch_compiles(watch))
        stack.enter_context(recorded_launches(watch, target, virtual is None))
        yield Recorded(assembly)


_MOST_SHOWN = 8


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%irscope: {message}. {' '.join(self.format_usage().split())}")


def _parser() -> _Parser:
    parser = _Parser("%%irscope", add_help=False)
    parser.add_argument("name", nargs="?", help="the variable that gets the captures")
    parser.add_argument("--target", "-t")
    parser.add_argument("--virtual", action="store_true")
    parser.add_argument("--disable-pass", "-d", action="append", default=[])
    parser.add_argument("--config", default="first")
    parser.add_argument("--snapshots", choices=("triton", "all", "none"), default="triton")
    return parser


def register(shell: Any) -> None:
    shell.register_magic_function(lambda line, cell: run_cell(shell, line, cell), "cell", "irscope")


def run_cell(shell: Any, line: str, cell: str) -> None:
    """Run a cell, and display its captures; raises what the cell raises, and UsageError for a bad `line`."""
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    asked = _parser().parse_args(shlex.split(line))
    if asked.name is not None and not asked.name.isidentifier():
        raise UsageError(f"%%irscope {asked.name!r}: give the name of a variable for the captures.")
    plan = " ".join(f"-{rule}" for rule in asked.disable_pass)
    options = RecordingOptions.of({"plan": plan, "config": asked.config, "snapshots": asked.snapshots})
    present = None if asked.virtual or asked.target else triton_api.present_gpu()
    virtual = None if present is not None else Target.parse(asked.target or DEFAULT_TARGET)
    # Not `execution_count`, which is this cell's or the next one's, as the version of IPython has it.
    origin = (("cell", f"In [{len(shell.user_ns.get('In', ' ')) - 1}]"),)
    request = RecordRequest.of_options(options, mode="script")
    with (
        _captured_launches(request, virtual, origin) as recorded,
        _quiet(shell),
        _rewritten(shell, virtual is not None),
    ):
        result = shell.run_cell(cell)
    captures = list(recorded)
    if asked.name is not None:
        shell.user_ns[asked.name] = captures
    for capture in captures[:_MOST_SHOWN]:
        display(capture)
    if len(captures) > _MOST_SHOWN:
        print(f"… and {len(captures) - _MOST_SHOWN} more captures: %%irscope NAME puts them all in a variable.")
    if not captures and result.success:
        print("irscope: the cell launched no kernel.")
    result.raise_error()


@contextmanager
def _quiet(shell: Any) -> Iterator[None]:
    with replaced(shell, "showtraceback", nothing), replaced(shell, "showsyntaxerror", nothing):
        yield


@contextmanager
def _rewritten(shell: Any, virtual: bool) -> Iterator[None]:
    """Compile cells as the virtual GPU has programs compiled, so that what it only stands in for can be followed."""
    if not virtual:
        yield
        return
    from irscope.record.virtual.rewrite import NAME, calls, rewrite_tree

    class Rewriting(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return rewrite_tree(node)

    transformer = Rewriting()
    with ExitStack() as stack:
        stack.enter_context(replaced_item(shell.user_ns, NAME, calls))
        shell.ast_transformers.append(transformer)
        stack.callback(lambda: shell.ast_transformers.remove(transformer))
        yield

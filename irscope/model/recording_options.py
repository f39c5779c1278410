"""The options of a recording, each declared once: for the command line, the Python interface and the child process.

A new option is one field here. Its text makes the option of every command that records, `irscope.record_all`
may take it by its name, and the recording process finds the value in its request.
"""

# ruff: noqa: RUF009 - `_option` makes a field

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from irscope.model.capture import SnapshotLevel
from irscope.plan import PassPlan
from irscope.target import Target


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command, or without names a positional argument; hidden ones work, and other pages list them."""

    names: tuple[str, ...]
    """`--name` and its short form."""
    metavar: str | None
    help: str
    least: float | None = None
    most: float | None = None
    shows_default: bool = True
    hidden: bool = False
    panel: str = "Options"
    kind: Any = None
    """The type of the value as the command line gives it, where no annotation says it."""
    default: Any = None

    @staticmethod
    def parse(text: str) -> tuple[str, Option]:
        """(parameter, declaration) of `--line N: Only this line.` or `versus = --vs KEY=VALUE (hidden): Another side.`

        In brackets stand the range of a number (`6..`, `0..7`), `hidden`, and `default unsaid`.
        """
        head, _, help_ = text.partition(": ")
        parameter, _, head = head.rpartition(" = ")
        head, _, noted = head.removesuffix(")").partition(" (")
        words = head.split()
        count = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
        names = tuple(word.rstrip(",") for word in words[:count])
        notes = noted.split(", ")
        limits = next((note.split("..") for note in notes if ".." in note), ["", ""])
        least, most = (literal_eval(limit) if limit else None for limit in limits)
        metavar = " ".join(words[count:]) or None
        option = Option(names, metavar, help_, least, most, "default unsaid" not in notes, "hidden" in notes)
        return parameter or names[0].partition("/")[0].lstrip("-").replace("-", "_"), option


def _option(default: Any, *texts: str, panel: Literal["Recording", "Passes"] = "Recording") -> Any:
    """A field with (parameter, option) of each flag that gives it."""
    rows: list[tuple[str, Option]] = []
    for text in texts:
        parameter, option = Option.parse(text)
        kind, without_flag = str | None, None
        if isinstance(default, (bool, str, float)):
            kind, without_flag = type(default), default
        elif isinstance(option.least, int):
            kind = int | None
        elif default == () or "repeatable" in option.help:
            kind = list[str] | None
        rows.append((parameter, replace(option, kind=kind, default=without_flag, panel=panel)))
    return field(default=default, metadata={"flags": tuple(rows)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """The options of a recording."""

    arguments: tuple[str, ...] = _option((), "arguments = [-- ARGS]: Arguments for the script.")
    module: str | None = _option(
        None, "--module, -m MODULE[::KERNEL]: Run a module, as python -m does, in place of a FILE."
    )
    tests: tuple[str, ...] = _option(
        (), "--pytest PATH[::TEST]: Run tests with pytest, in place of a FILE; repeatable."
    )
    test_filter: str | None = _option(None, "-k EXPR: Only the tests that match, with --pytest.")
    dry: bool = _option(
        False,
        "--dry: Run the script in a copy of the working folder, which is removed afterwards: what it writes there is "
        "not kept.",
    )
    targets: tuple[str, ...] = _option(
        (),
        "--target, -t BACKEND:ARCH: cuda:90, hip:gfx942, h100, mi300x, …; repeatable. Default: this machine's GPU, or "
        "cuda:90 without one.",
    )
    launch: int | None = _option(None, "--launch N (1..): Only launch number N, counted from 1 for each target.")
    virtual: bool = _option(False, "--virtual: Use the virtual GPU even if this machine has a real one.")
    computes: bool = _option(
        False, "--values: Let the virtual GPU compute, on the CPU: tensors hold their data, and launches are run."
    )
    values_memory_gib: float = _option(
        4.0, "--values-memory GIB (0.001..): With --values, a launch whose tensors have more is recorded, and not run."
    )
    values_timeout_s: float | None = _option(
        None,
        "--values-timeout SECONDS (0..): With --values, end a launch after this time; its tensors are unchanged. "
        "Default: never.",
    )
    signature: str | None = _option(
        None,
        "--signature TYPES: Compile FILE::KERNEL without running the script: '*fp16:16, i32, 64', as for "
        "triton.tools.compile.",
    )
    into: str | None = _option(
        None, "--into STAGE: An IR file: the stage whose passes run on it. Default: the one after that of its suffix."
    )
    constexprs: tuple[tuple[str, str], ...] = _option(
        (), "--constexpr NAME=VALUE: A tl.constexpr argument of the kernel, with --signature; repeatable."
    )
    options: tuple[tuple[str, Any], ...] = _option(
        (),
        "--num-warps (1..): Warps per CTA.",
        "--num-stages (0..): Stages of software-pipelined loops.",
        "--num-ctas (1..): CTAs per cluster.",
        "--option KEY=VALUE: A compile option of the backend, as maxnreg=64; repeatable.",
    )
    """Compile options that replace the launch's own."""
    config: str = _option(
        "first",
        "--config all|N|KEY=VALUE (default unsaid): Which configurations of an autotuned kernel the virtual GPU "
        "compiles. Default: the first that fits.",
    )
    assume: tuple[tuple[str, str], ...] = _option(
        (),
        "--assume NAME=VALUE: The value that the virtual GPU uses, instead of 0, for a number that only a real GPU "
        "could compute. NAME is the variable that the script assigns it to, FILE:LINE of the read, or the kernel's "
        "parameter; repeatable.",
    )
    plan: PassPlan = _option(
        PassPlan(),
        "--disable-pass, -d [STAGE:]NAME[#N]: Switch a pass off: combine, ttgir:coalesce, canonicalizer#2, llvm-opt, "
        "ptxas-opt, ptxas-O3, llvm:licm#2; repeatable.",
        "--enable-only STAGE:NAME[#N]: Switch every other pass of that stage off; repeatable.",
        "--plan FILE: A file of -RULE (switch off) and +STAGE:RULE (keep only).",
        panel="Passes",
    )
    snapshots: SnapshotLevel = _option(
        "triton",
        "--snapshots triton|all|none: After which passes to keep the IR: triton (while it has Triton's dialects), all, "
        "or none.",
        panel="Passes",
    )
    llvm_passes: bool = _option(False, "--llvm: Also record the IR after each LLVM pass.", panel="Passes")
    jobs: int | None = _option(
        None,
        "--jobs, -j N (1..): Compile N launches at a time while the script continues. Default: one for each core. 1: "
        "one after another, and a script stops at the first that fails. With --values: threads that run programs.",
    )
    resume: bool = _option(
        False, "--resume: Do not compile again launches that are stored, for example by an interrupted recording."
    )
    timeout_s: float = _option(300.0, "--timeout SECONDS (0.1..): Time limit for compiling one kernel.")
    verbose: bool = _option(False, "--verbose, -v: Show what the script and the compiler print.")
    interpreter: str | None = _option(None)
    """A Python with another Triton."""
    constants: tuple[tuple[str, str], ...] = _option(())
    """tl.constexpr values that replace a launch's own in what is recorded; what is launched keeps them."""
    disassemble: bool = _option(True)
    """Whether to make the sass stage now (nvdisasm takes half a second); it can be made of the cubin later."""
    data_limit_bytes: int = _option(0)
    """The largest tensor of a launch whose data are stored, where there are any; 0 for none."""
    times: bool = _option(False)
    """Whether the parts of each compile are timed, one after another, in a process that imports Triton anew."""
    layouts: bool = _option(True)
    """Whether to ask the compiler for its layouts too."""

    @staticmethod
    def of(values: Mapping[str, Any]) -> RecordingOptions:
        """Options as programs give them, by field: a plan and targets as text, dicts, lists, None for the default."""
        return RecordingOptions(
            **{name: _normal(name, value) for name, value in values.items() if value is not None and value != ()}
        )

    @property
    def program(self) -> str:
        """The program that takes the place of a FILE, as messages name it; empty if there is none."""
        return (
            f"-m {self.module}" if self.module is not None else " ".join(("--pytest", *self.tests)) * bool(self.tests)
        )

    @property
    def changes_a_capture(self) -> bool:
        """Whether a capture must be compiled again to be what is asked for."""
        return bool(self.plan or self.targets or self.options or self.llvm_passes or self.snapshots != "triton")


def _normal(name: str, value: Any) -> Any:
    default = next(item.default for item in fields(RecordingOptions) if item.name == name)
    if name == "plan":
        return PassPlan.parse(value) if isinstance(value, str) else value
    if not isinstance(default, tuple):
        return value
    if name in ("targets", "arguments", "tests"):
        # A target or a path may be given alone.
        alone = isinstance(value, (str, Target, Path))
        return tuple(str(one) for one in ([value] if alone else value))
    rows = tuple(dict(value).items())
    if name == "options":
        return rows
    as_text = repr if name == "constexprs" else str
    return tuple((key, one if isinstance(one, str) else as_text(one)) for key, one in rows)

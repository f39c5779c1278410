"""The options of a recording, each declared once: for the command line, the Python interface and the child process.

A new option is one field here. Its `Flag` makes the option of every command that records, a field with a `keyword` is
one of `irscope.record_all`, and the recording process finds the value in its request.
"""

# ruff: noqa: RUF009 - `_option` makes a field

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from irscope.model.capture import SnapshotLevel
from irscope.plan import PassPlan
from irscope.target import Target


class Flag(NamedTuple):
    """How the command line gives a value, or a part of it."""

    names: tuple[str, ...]
    """`--target`, `-t`; none for what stands after `--`."""
    help: str
    metavar: str | None = None
    kind: Any = None
    """The type of the value as the command line gives it; None for that of the field."""
    default: Any = None
    shows_default: bool = True
    least: float | None = None
    panel: Literal["Recording", "Passes"] = "Recording"

    @property
    def parameter(self) -> str:
        """Its name as a parameter: `num_warps`."""
        return self.names[0].lstrip("-").replace("-", "_") if self.names else "arguments"


def _option(default: Any, *flags: Flag, keyword: str = "") -> Any:
    """A field with its flags, and its keyword in the Python interface."""
    if isinstance(default, bool):
        kind, without_flag = bool, default
    else:
        kind, without_flag = list[str] | None if default == () else str | None, None
    typed = tuple(flag if flag.kind else flag._replace(kind=kind, default=without_flag) for flag in flags)
    return field(default=default, metadata={"flags": typed, "keyword": keyword})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """The options of a recording."""

    arguments: tuple[str, ...] = _option((), Flag((), "Arguments for the script.", "[-- ARGS]"), keyword="arguments")
    module: str | None = _option(
        None,
        Flag(("--module", "-m"), "Run a module, as python -m does, in place of a FILE.", "MODULE[::KERNEL]"),
        keyword="module",
    )
    tests: tuple[str, ...] = _option(
        (),
        Flag(("--pytest",), "Run tests with pytest, in place of a FILE; repeatable.", "PATH[::TEST]"),
        keyword="tests",
    )
    test_filter: str | None = _option(None, Flag(("-k",), "Only the tests that match, with --pytest.", "EXPR"))
    dry: bool = _option(
        False,
        Flag(
            ("--dry",),
            "Run the script in a copy of the working folder, which is removed afterwards: what it writes there is not "
            "kept.",
        ),
    )
    targets: tuple[str, ...] = _option(
        (),
        Flag(
            ("--target", "-t"),
            "cuda:90, hip:gfx942, h100, mi300x, …; repeatable. Default: this machine's GPU, or cuda:90 without one.",
            "BACKEND:ARCH",
        ),
        keyword="target",
    )
    launch: int | None = _option(
        None, Flag(("--launch",), "Only launch number N, counted from 1 for each target.", "N", int | None, least=1)
    )
    virtual: bool = _option(
        False,
        Flag(("--virtual",), "Use the virtual GPU even if this machine has a real one."),
        keyword="virtual",
    )
    computes: bool = _option(
        False,
        Flag(
            ("--values",),
            "Let the virtual GPU compute, on the CPU: tensors hold their data, and launches are run.",
            kind=bool,
            default=False,
        ),
        keyword="values",
    )
    signature: str | None = _option(
        None,
        Flag(
            ("--signature",),
            "Compile FILE::KERNEL without running the script: '*fp16:16, i32, 64', as for triton.tools.compile.",
            "TYPES",
        ),
        keyword="signature",
    )
    into: str | None = _option(
        None,
        Flag(
            ("--into",),
            "An IR file: the stage whose passes run on it. Default: the one after that of its suffix.",
            "STAGE",
        ),
    )
    constexprs: tuple[tuple[str, str], ...] = _option(
        (),
        Flag(
            ("--constexpr",),
            "A tl.constexpr argument of the kernel, with --signature; repeatable.",
            "NAME=VALUE",
        ),
        keyword="constexprs",
    )
    options: tuple[tuple[str, Any], ...] = _option(
        (),
        Flag(("--num-warps",), "Warps per CTA.", kind=int | None, least=1),
        Flag(("--num-stages",), "Stages of software-pipelined loops.", kind=int | None, least=0),
        Flag(("--num-ctas",), "CTAs per cluster.", kind=int | None, least=1),
        Flag(("--option",), "A compile option of the backend, as maxnreg=64; repeatable.", "KEY=VALUE"),
        keyword="options",
    )
    """Compile options that replace the launch's own."""
    config: str = _option(
        "first",
        Flag(
            ("--config",),
            "Which configurations of an autotuned kernel the virtual GPU compiles. Default: the first that fits.",
            "all|N|KEY=VALUE",
            str,
            "first",
            shows_default=False,
        ),
        keyword="config",
    )
    assume: tuple[tuple[str, str], ...] = _option(
        (),
        Flag(
            ("--assume",),
            "The value that the virtual GPU uses, instead of 0, for a number that only a real GPU could compute. NAME "
            "is the variable that the script assigns it to, FILE:LINE of the read, or the kernel's parameter; "
            "repeatable.",
            "NAME=VALUE",
        ),
        keyword="assume",
    )
    plan: PassPlan = _option(
        PassPlan(),
        Flag(
            ("--disable-pass", "-d"),
            "Switch a pass off: combine, ttgir:coalesce, canonicalizer#2, llvm-opt, ptxas-opt; repeatable.",
            "[STAGE:]NAME[#N]",
            list[str] | None,
            panel="Passes",
        ),
        Flag(
            ("--enable-only",),
            "Switch every other pass of that stage off; repeatable.",
            "STAGE:NAME[#N]",
            list[str] | None,
            panel="Passes",
        ),
        Flag(("--plan",), "A file of -RULE (switch off) and +STAGE:RULE (keep only).", "FILE", panel="Passes"),
        keyword="plan",
    )
    snapshots: SnapshotLevel = _option(
        "triton",
        Flag(
            ("--snapshots",),
            "After which passes to keep the IR: triton (while it has Triton's dialects), all, or none.",
            "triton|all|none",
            str,
            "triton",
            panel="Passes",
        ),
        keyword="snapshots",
    )
    llvm_passes: bool = _option(
        False,
        Flag(("--llvm",), "Also record the IR after each LLVM pass.", panel="Passes"),
        keyword="llvm_passes",
    )
    jobs: int | None = _option(
        None,
        Flag(
            ("--jobs", "-j"),
            "Compile N launches at a time while the script goes on. Default: one for each core. 1: one after another, "
            "and a script stops at the first that fails.",
            "N",
            int | None,
            least=1,
        ),
        keyword="jobs",
    )
    resume: bool = _option(
        False,
        Flag(
            ("--resume",),
            "Do not compile again what is stored, such as by an earlier recording that was interrupted.",
        ),
    )
    timeout_s: float = _option(
        300.0,
        Flag(("--timeout",), "Time limit for compiling one kernel.", "SECONDS", float, 300.0, least=0.1),
        keyword="timeout_s",
    )
    verbose: bool = _option(False, Flag(("--verbose", "-v"), "Show what the script and the compiler print."))
    interpreter: str | None = _option(None, keyword="interpreter")
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

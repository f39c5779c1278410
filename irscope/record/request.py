"""What a recording process is asked for, as a value and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from irscope.assumption import Assumption, Decision
from irscope.capture import Autotuning, Kernel, Launch, SnapshotLevel
from irscope.launch_record import Argument, LaunchRecord
from irscope.store import tupled


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """Which launches to record, and how."""

    mode: Literal["script", "signature", "text"]
    """Run a script; compile a kernel from a signature; or compile on from the text of a stage."""
    path: str = ""
    """The script, the file of the kernel, or the IR file."""
    arguments: tuple[str, ...] = ()
    """The script's own arguments."""
    targets: tuple[str, ...] = ()
    """Empty: the GPU that is there, else cuda:90. A recording process takes one: `one_for_each_target`."""
    plan: str = ""
    snapshots: SnapshotLevel = "triton"
    llvm_passes: bool = False
    """Whether to record the IR after each LLVM pass too."""
    kernel: str = ""
    """The kernel's name; empty takes every one."""
    virtual: bool = False
    """Run on the virtual GPU even where there is a real one."""
    configs: str = "first"
    """Which configurations of an autotuned kernel: `first`, `all`, an index, or KEY=VALUE."""
    signature: str = ""
    constexprs: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    """tl.constexpr values that replace a launch's own in what is recorded; what is launched keeps them."""
    assume: tuple[tuple[str, str], ...] = ()
    """Values of what the virtual GPU would assume, by name or FILE:LINE."""
    options: tuple[tuple[str, Any], ...] = ()
    """Compile options that replace the launch's own."""
    stage: str = ""
    """`text`: the stage whose artifact the text is."""
    text: str = ""
    launch: dict[str, Any] | None = None
    """`text`: the launch of the capture that the text comes from, as JSON holds it."""
    launch_target: str = ""
    """`text`: the target the text was made for."""
    resume_stage: str = ""
    """`text`: the text is a snapshot within this stage, which runs again from the pass after it."""
    resume_after: int = 0
    """How many passes of `resume_stage` are behind the text already."""
    log_path: str = ""
    """Where the process's standard error goes, so that diagnostics can be told apart."""
    limit_s: float = 0.0
    """Seconds after which a compile is ended; 0 where nothing ends it."""
    mlir_dump_path: str = ""
    """Where `MLIR_ENABLE_DUMP` prints to; with it, that stands in for the tap."""
    disassemble: bool = True
    """Whether to make the sass stage now; it can be made of the cubin later."""
    layouts: bool = True
    """Whether to ask the compiler for its layouts too."""

    def to_json(self) -> str:
        """The request as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> RecordRequest:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        known = {item.name for item in fields(RecordRequest)}
        for name in ("arguments", "targets"):
            data[name] = tuple(data[name])
        for name in ("constexprs", "constants", "options", "assume"):
            data[name] = tuple((key, value) for key, value in data[name])
        return RecordRequest(**{key: value for key, value in data.items() if key in known})


def launch_of(data: Mapping[str, Any]) -> Launch:
    """The launch of a request, of the values that `dataclasses.asdict` made of it.

    The recording process has the standard library alone; what comes from a file is checked where it is read.
    """
    tuning, chosen, record = (data.get(name) for name in ("autotuning", "set_options", "record"))
    signature, constants, attributes, options = (
        _pairs(data.get(name, ())) for name in ("signature", "constants", "attributes", "options")
    )
    return Launch(
        kernel=Kernel(**data["kernel"]),
        signature=signature,
        constants=constants,
        attributes=attributes,
        options=options,
        grid=tupled(data.get("grid")),
        language=data.get("language", "triton"),
        autotuning=None if tuning is None else Autotuning(**tuning),
        assumptions=tuple(map(_assumption, data.get("assumptions", ()))),
        set_options=None if chosen is None else _pairs(chosen),
        record=None if record is None else LaunchRecord(tuple(_argument(row) for row in record["arguments"])),
    )


def _pairs(rows: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((key, tupled(value)) for key, value in rows)


def _assumption(row: Mapping[str, Any]) -> Assumption:
    return Assumption(**{**row, "decided": tuple(Decision(**one) for one in row["decided"])})


def _argument(row: Mapping[str, Any]) -> Argument:
    return Argument(**{name: tupled(value) for name, value in row.items()})


def one_for_each_target(request: RecordRequest) -> tuple[RecordRequest, ...]:
    """The requests, each for a process of its own, that a request for several targets stands for.

    A program may ask which GPU it is on, Triton specialises a launch for one backend, and LLVM's flags are the
    process's: nothing of one target's compile is there in another's.
    """
    return tuple(replace(request, targets=(target,)) for target in dict.fromkeys(request.targets)) or (request,)

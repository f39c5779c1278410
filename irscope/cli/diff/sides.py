"""Chooses the captures to compare: two named sides, or a launch and a variant of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, compiled_again
from irscope.cli.subject.named import is_program, split_subject
from irscope.cli.subject.recording import option_value, versus_pair
from irscope.cli.subject.stored import is_capture, refuse_empty
from irscope.errors import RecordingError, UsageError
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import STAGE_NAMES, Artifact, Capture, Kernel, Launch, Target, stage_named
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.store.collection import is_collection
from irscope.target import KNOWN_TARGETS

Pair = tuple[Capture, Capture]

_IR_SUFFIXES = (".source", ".ttir", ".ttgir", ".glir", ".llir", ".ptx", ".sass", ".amdgcn", ".mlir", ".ll")
# These need another run of the script.
_SCRIPT_AGAIN = ("config", "triton")


def pairs_of(
    left: str | None, right: str | None, record_options: RecordingOptions, versus: Sequence[str]
) -> list[Pair]:
    """The pairs of captures to compare.

    With two subjects: theirs, paired by kernel and signature. With one: each of its captures against the variant that
    the plan and `versus` describe. Raises UsageError if neither is given.
    """
    for one in (left, right):
        refuse_empty(one)
    variant = _variant(versus)
    if right is not None:
        if variant or record_options.plan:
            raise UsageError("two sides are given already: leave out --vs and --disable-pass, or the second side.")
        return _paired(_side(left or "last", record_options), _side(right, record_options))
    if not variant and not record_options.plan:
        raise UsageError(
            "there is nothing to compare it with: give a second FILE or CAPTURE, --disable-pass, --vs or --pass."
        )
    base = replace(record_options, plan=PassPlan())
    if "kernel" in variant:
        return _against_other_kernel(left, base, variant["kernel"])
    if any(key in variant for key in _SCRIPT_AGAIN):
        return _recorded_again(left, base, record_options, variant)
    captures = captures_of(left, base)
    constexprs = _constexprs(captures, variant)
    if constexprs:
        return _with_other_constexprs(left, base, captures, constexprs)
    options = tuple((key, option_value(value)) for key, value in variant.items() if key != "target")
    targets = (variant["target"],) if "target" in variant else ()
    if targets and not is_capture(split_subject(left, base)[0]):
        # The program may behave differently there: it runs again, as on that target.
        there = replace(base, targets=targets, plan=record_options.plan)
        others: Sequence[Capture] = captures_of(left, there, becomes_last=False)
        if options:
            how = replace(base, plan=record_options.plan, options=options)
            others = [compiled_again(other, how) for other in others]
        return _paired(captures, others)
    how = replace(base, plan=record_options.plan, targets=targets, options=options)
    return [(one, compiled_again(one, replace(how, plan=one.plan.joined(record_options.plan)))) for one in captures]


def nothing_to_compare(capture: Capture, versus: Sequence[str], plan: PassPlan) -> str:
    """The message for a variant that does not differ from the launch."""
    same = [f"{key} is {value} already" for key, value in _variant(versus).items()]
    same += [f"{rule} is off already" for rule in plan.disabled]
    same += [f"{rule} is already one of the only passes on" for rule in plan.only]
    return f"{capture.id[:8]} {capture.name} {capture.target}: {', '.join(same)}: nothing to compare"


def _variant(versus: Sequence[str]) -> dict[str, str]:
    rows: dict[str, str] = {}
    for text in versus:
        key, value = versus_pair(text, "--vs")
        rows[key] = value
    if "target" in rows:
        Target.parse(rows["target"])
    return rows


def _side(subject: str, record_options: RecordingOptions) -> Sequence[Capture]:
    path = Path(subject)
    if path.is_dir() and not is_collection(path):
        return [_folder(path)]
    # An IR file is compared as it is, and not compiled.
    if path.is_file() and path.suffix in _IR_SUFFIXES:
        return [_plain_capture(path.stem, [path])]
    return captures_of(subject, record_options)


def _folder(folder: Path) -> Capture:
    files = sorted(path for path in folder.iterdir() if path.is_file() and _stage_of(path))
    if not files:
        raise RecordingError(f"{str(folder)!r} holds no stages: its files must end in .ttir, .ttgir, .llir, .ptx, ….")
    stems = sorted({path.stem for path in files})
    if len(stems) > 1:
        raise UsageError(
            f"{str(folder)!r} holds the stages of {len(stems)} kernels ({', '.join(stems)}): name one's files."
        )
    return _plain_capture(stems[0], files)


def _stage_of(path: Path) -> str:
    suffix = path.suffix.removeprefix(".")
    stage = {"mlir": "ttgir", "ll": "llir"}.get(suffix, suffix)
    return stage if stage in STAGE_NAMES else ""


def _plain_capture(name: str, files: Sequence[Path]) -> Capture:
    artifacts: list[Artifact] = []
    for path in files:
        stage = _stage_of(path)
        data = path.read_bytes()
        if not data.strip():
            raise UsageError(f"{str(path)!r} is empty: give a file with the text of a stage.")
        artifacts.append(Artifact(stage, data if stage_named(stage).is_binary else data.decode("utf-8", "replace")))
    return Capture(Launch(Kernel(name)), _target_in(artifacts), artifacts=tuple(artifacts))


def _target_in(artifacts: Sequence[Artifact]) -> Target:
    modules = (one.text for one in artifacts if stage_named(one.stage).kind == "mlir")
    stated = {str(parse_mlir(text).option("target")) for text in modules}
    known = next((target for target in KNOWN_TARGETS if str(target) in stated), None)
    if known is not None:
        return known
    amd = any(artifact.stage in ("amdgcn", "hsaco") for artifact in artifacts)
    return Target("hip", "unknown", 64) if amd else Target("cuda", "unknown", 32)


def _paired(left: Sequence[Capture], right: Sequence[Capture]) -> list[Pair]:
    if len(left) == 1 and len(right) == 1:
        return [(left[0], right[0])]
    rest = list(right)
    pairs: list[Pair] = []
    for one in left:
        other = _partner(one, rest)
        if other is None:
            say(f"only on the left: {one.name} ({one.target})")
            continue
        rest.remove(other)
        pairs.append((one, other))
    for other in rest:
        say(f"only on the right: {other.name} ({other.target})")
    if not pairs:
        ours, theirs = (", ".join(sorted({capture.name for capture in side})) for side in (left, right))
        raise UsageError(f"no kernel is on both sides: {ours} against {theirs}. Choose FILE::KERNEL on each.")
    return pairs


def _partner(one: Capture, others: Sequence[Capture]) -> Capture | None:
    """The most similar capture of the same kernel: by signature, then target, constants and options."""
    named = [other for other in others if other.name == one.name]

    def alikeness(other: Capture) -> tuple[bool, bool, bool, bool]:
        return (
            other.launch.signature == one.launch.signature,
            other.target == one.target,
            other.launch.constants == one.launch.constants,
            other.launch.options == one.launch.options,
        )

    return max(named, key=alikeness, default=None)


def _against_other_kernel(left: str | None, record_options: RecordingOptions, other: str) -> list[Pair]:
    file, kernel = split_subject(left, record_options)
    module = record_options.module and record_options.module.partition("::")[0]
    captures = captures_of(None if record_options.program else file, replace(record_options, module=module))
    named = [capture for capture in captures if capture.name == other]
    if not named:
        names = ", ".join(sorted({capture.name for capture in captures}))
        raise UsageError(f"--vs kernel={other}: {file} launched {names}.")
    ours = [one for one in captures if (one.name == kernel if kernel else one.name != other)]
    if not ours:
        raise UsageError(f"--vs kernel={other}: there is no other kernel to compare it with.")
    return [(ours[0], named[0])]


def _recorded_again(
    left: str | None, base: RecordingOptions, record_options: RecordingOptions, variant: dict[str, str]
) -> list[Pair]:
    if not is_program(left, base):
        raise UsageError("--vs config= and triton= run the script again: give the FILE, not a capture.")
    others = {key: value for key, value in variant.items() if key not in _SCRIPT_AGAIN}
    if others:
        raise UsageError(f"--vs {', '.join(others)} does not go together with config= or triton=: one thing at a time.")
    again = replace(
        base, plan=record_options.plan, config=variant.get("config", base.config), interpreter=variant.get("triton")
    )
    return _paired(captures_of(left, base), captures_of(left, again, becomes_last=False))


def _constexprs(captures: Sequence[Capture], variant: dict[str, str]) -> dict[str, str]:
    constants = {name for capture in captures for name, _ in capture.launch.constants}
    options = {name for capture in captures for name, _ in capture.launch.options}
    return {key: value for key, value in variant.items() if key in constants and key not in options}


def _with_other_constexprs(
    left: str | None, record_options: RecordingOptions, captures: Sequence[Capture], constexprs: dict[str, str]
) -> list[Pair]:
    """Another constant changes the front end's IR: run the script, or compile the signature, again."""
    if not is_program(left, record_options):
        raise UsageError(f"--vs {', '.join(constexprs)} changes the IR of the front end: give the FILE, not a capture.")
    if record_options.signature is not None:
        again = replace(record_options, constexprs=tuple({**dict(record_options.constexprs), **constexprs}.items()))
    else:
        again = replace(record_options, constants=tuple(constexprs.items()))
    return _paired(captures, captures_of(left, again, becomes_last=False))


def stages_shown(left: Capture, right: Capture, record_options: Sequence[str]) -> list[str]:
    """The stages whose texts are shown: those of `--stage`, or else that of a pass that is switched off."""
    if list(record_options) == ["all"]:
        return [stage for stage in left.stages if stage in right.stages and not stage_named(stage).is_binary]
    if record_options:
        for stage in record_options:
            left.artifact(stage)
        return list(record_options)
    new_rules = [rule for rule in right.plan.disabled if rule not in left.plan.disabled]
    for rule in (*new_rules, *right.plan.only):
        for snapshot in right.passes():
            if rule.matches(snapshot) and snapshot.stage in left.stages and snapshot.stage in right.stages:
                return [snapshot.stage] if not stage_named(snapshot.stage).is_binary else ["sass"]
    return []

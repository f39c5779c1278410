"""Verifies one launch of a capture: executes its IR as far as addresses need it, and judges what it accesses.

The IR of the front end is executed for the programs of the launch: what is wrong there is so in the kernel. Of single
programs, the TTGIR is executed too, by thread: what is wrong only there, a pass has made, and the first pass after
which it is so is named.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from math import prod
from os.path import basename

from irscope.errors import (
    IrscopeError,
    NotComputed,
    NotRun,
    UsageError,
    WrongProgram,
)
from irscope.ir.mlir.model import Operation
from irscope.machine.captured import captured_inputs
from irscope.machine.launch import run
from irscope.machine.values import Array
from irscope.memory.addresses.parts import program_at, spread_evenly
from irscope.model.capture import Capture, StageKind
from irscope.verify.bounds import Arguments, Bounds
from irscope.verify.cta import DEFAULT_INSTRUCTIONS, CtaVerifier, code_of_threads, uses_shared
from irscope.verify.order import ReadsFrom, moved_load
from irscope.verify.programs import SameThreads, chosen_programs, prove_programs
from irscope.verify.runs import LaunchRuns, sentence
from irscope.verify.texts import (
    AddressWatch,
    ExecutedText,
    Listeners,
    argument_paths,
    changed_texts,
)
from irscope.verify.threads import Barriers, Owners, ThreadConflict, ThreadConflicts, stays_in_thread
from irscope.verify.trace import (
    Conflict,
    Conflicts,
    Listener,
    OfPrograms,
    Tracer,
    WrittenBytes,
    relaxed_operations,
    sync_operations,
)
from irscope.verify.verdict import KERNEL, SafetyVerdict, Violation

DEFAULT_ELEMENTS = 1 << 24
"""Accesses of elements that are followed unless all programs are asked for: some seconds."""
QUICK_ELEMENTS = 1 << 20
"""Where the verdict is a line among others, and of launches that are not decided."""
_PROVED_ELEMENTS = 1 << 21
"""More are proved, if they can be."""
_BYTES_PER_ELEMENT = 64
"""Of memory that are made in the time that following one element takes."""
_MOST_ALONE = 16
"""Programs of which bounds alone are checked, where memory is too large to compare what programs access."""
_MOST_CTAS = 32
"""Whose shared memory is followed where all programs are asked for."""


class _Followed(Listeners):
    """The accesses of some programs, by thread, and which write each load reads."""

    def __init__(self, threads: ThreadConflicts, reads: ReadsFrom) -> None:
        super().__init__(threads, reads)
        self.threads, self.reads = threads, reads


def verify_launch(
    capture: Capture, *, elements: int | None = DEFAULT_ELEMENTS, values: dict[str, Array] | None = None,
    earlier: Sequence[Capture] = (),
) -> SafetyVerdict:  # fmt: skip
    """Verify the launch of a capture; what cannot be executed, or whose memory is not known, is not decided.

    `elements`: how many accesses of elements are followed at the most; None for all of the launch's programs. `values`:
    name → the elements of a tensor, or a number, for what the capture does not hold; raises UsageError where they do
    not fit. `earlier`: captures of the same program: what their launches wrote to memory of `torch.empty` is taken as
    written.
    """
    grid = capture.launch.grid
    if capture.failure is not None:
        return SafetyVerdict(undecided=(f"it did not compile: {capture.failure.headline}",))
    if not {"source", "ttir", "ttgir"} & {*capture.texts}:
        return SafetyVerdict(undecided=("the capture holds no TTIR and no TTGIR",))
    if capture.launch.record is None or grid is None:
        return SafetyVerdict(undecided=("it was compiled without a launch, so its arguments are unknown",))
    if not prod(grid):
        return SafetyVerdict(notes=(f"the launch runs no program: its grid is {'×'.join(map(str, grid))}",))
    unsized = [
        one.path for one in capture.launch.record.arguments if one.kind != "scalar" and one.storage_bytes is None
    ]
    if unsized:
        return SafetyVerdict(undecided=(f"the size of the memory of {', '.join(unsized)} is not known",))
    verifier = _Verifier(capture, grid, elements, values or {}, earlier)
    verdict = verifier.verdict()
    if verdict.answer == "not decided" and verifier.unknown:
        # Whatever these elements are: all accesses that their masks may let through.
        whole = _Verifier(capture, grid, elements, values or {}, earlier, assumes=True).verdict()
        if whole.answer == "safe":
            note = f"whatever the elements of {', '.join(sorted(verifier.unknown))} are"
            return replace(whole, notes=(*whole.notes, note))
    return verdict


class _Verifier(LaunchRuns):
    def verdict(self) -> SafetyVerdict:
        self._guard("the accesses of all programs", self._check_programs)
        if not self.violations:
            self._guard("the TTGIR by thread", self._check_threads)
        if all(one.kind in ("thread-race", "never-ends") for one in self.violations):
            # A race in global memory hides none in shared memory, and a wait that never ends may come of one.
            self._guard("shared memory by thread", self._check_shared)
        found = dict.fromkeys(self.violations)
        return SafetyVerdict(
            tuple(found), tuple(dict.fromkeys(self.undecided)), len(self.programs), self.all_programs,
            tuple(dict.fromkeys(self.notes)), self.shared, self.proved,
        )  # fmt: skip

    def _guard(self, what: str, check: Callable[[], None]) -> None:
        try:
            check()
        except IrscopeError as error:
            if isinstance(error, UsageError) and self.values:
                raise
            self.undecided.append(f"{what}: {sentence(error)}")
        except MemoryError:
            self.undecided.append(f"{what}: too large: it needs more memory than this machine has")

    # ── programs ──────────────────────────────────────────────────────────────────────────────────────────────

    def _check_programs(self) -> None:
        text = self._front
        try:
            first = self._run(text, lambda: self._conflicts(text), [0])
        except NotRun:
            # Tensors that are too large for this machine are not for a proof.
            suspects = self._prove()
            if suspects is None:
                return
            # Without what all programs accessed, an access out of bounds is found still.
            self.programs = sorted({*suspects, *spread_evenly(self.all_programs, _MOST_ALONE)})
            self._run(text, Listener, self.programs)
            raise
        self.programs, self._each, self._own = (0,), max(first.elements, 1), first.own
        if self.violations or self.all_programs == 1:
            return
        self.programs = chosen_programs(self.all_programs, self._each, self.elements)
        before = len(self.undecided)
        limit = self.elements
        if limit is not None and self.all_programs * self._each > min(limit, _PROVED_ELEMENTS):
            suspects = self._prove()
            if suspects is None:
                self.programs = (0,)
                return
            if len(self.programs) == self.all_programs:
                del self.undecided[before:]
            else:
                # The answer is open whatever these show: fewer of them show as much.
                some = chosen_programs(self.all_programs, self._each, min(limit, QUICK_ELEMENTS))
                self.programs = sorted({*some, *suspects})
        conflicts = self._run(text, lambda: self._conflicts(text), self.programs)
        if self._waits and len(self.programs) < self.all_programs:
            # All had to be executed: none is left for a proof.
            self.programs = range(self.all_programs)
            del self.undecided[before:]
            conflicts = self._run(text, lambda: self._conflicts(text), self.programs)
        self._own = conflicts.own
        if conflicts.lost_clocks and conflicts.found:
            self.undecided.append(f"atomic operations of {self.all_programs} programs are too many to follow")
            return
        for conflict in conflicts.found.values():
            if not self._is_random(text, conflict.first, conflict.second):
                self._tell_conflict(text, conflict)
        for (_, releases), conflict in conflicts.released.items():
            self._check_release(text, conflict, releases)

    def _prove(self) -> tuple[int, ...] | None:
        """None if z3 proves that the programs that are not executed are safe; else some that may not be."""
        record, ir = self.capture.launch.record, self.capture.texts.get("ttir", "")
        if record is None or not ir:
            return ()
        text = self._text(ir)
        proof = prove_programs(
            text.module, self.grid, record, lambda one: basename(text.place(one)), SameThreads(self.capture, text)
        )
        if proof is None:
            return ()
        if not proof.reason:
            self.proved = True
            self._own = {*self._own, *proof.suspects}
            return None
        self.undecided.append(f"of the programs that were not executed, {proof.reason} (--all-programs executes them)")
        return proof.suspects

    def _conflicts(self, text: ExecutedText) -> Conflicts:
        return Conflicts(text.granule, self.all_programs, with_clocks=bool(sync_operations(text.module)))

    def _tell_conflict(self, text: ExecutedText, conflict: Conflict) -> None:
        pair = sorted({program for program in (conflict.first_program, conflict.second_program) if program >= 0})
        waits = bool(sync_operations(text.module)) or len(pair) < 2
        watch = self._seen(text, conflict.address, self.programs if waits else pair)
        seen = watch.seen
        second = next(
            (row for row in seen if row[0] is conflict.second and row[1] == conflict.second_program),
            (conflict.second, conflict.second_program, ()),
        )
        first = next(
            (
                row
                for row in seen
                if row[0] is conflict.first and row[1] != second[1] and conflict.first_program in (-1, row[1])
            ),
            (conflict.first, conflict.first_program, ()),
        )
        kinds = ["writes" if one[0].kind == "store" else "updates" if one[0].kind == "atomic" else "reads"
                 for one in (first, second)]  # fmt: skip
        relaxed = ", ".join(sorted({basename(text.place(one)) for one in relaxed_operations(text.module)}))
        detail = (
            f"one program {kinds[0]} an address that another {kinds[1]}, and no atomic operation orders them "
            f"({conflict.count} place{'s' if conflict.count > 1 else ''} at once)"
            + (f"; those at {relaxed} are relaxed" if relaxed else "")
        )
        if first[0].kind == second[0].kind == "store" and self._is_equal(text, conflict, first[1], second[1]):
            self.notes.append(
                f"several programs write the same value to {watch.text} and other places ({text.place(second[0])})"
            )
            return
        witnesses = tuple(self._witness(text, *row) for row in (first, second))
        self._add(text, Violation("program-race", detail, witnesses, watch.text))

    def _check_release(self, text: ExecutedText, conflict: Conflict, releases: Sequence[Operation]) -> None:
        """A store by many threads, and the atomic operation of one, which releases its own thread's alone."""
        kinds = [kind for kind in conflict.first.operand_types if kind.form == "tensor" and prod(kind.shape) > 1]
        places = [text.origin(one)[:1] for one in (conflict.first, *releases)]
        if not kinds or not releases or not all(places):
            return
        store, *ends = [one[0] for one in places]
        if any(self._barriers.releases(store, end) for end in ends):
            return
        rows = [(conflict.first, conflict.first_program), (releases[0], conflict.first_program)]
        rows.append((conflict.second, conflict.second_program))
        detail = (
            "one program stores what another accesses behind an atomic operation, which one thread executes with no "
            "barrier to the other threads' stores (tl.debug_barrier() before it is one)"
        )
        witnesses = tuple(self._witness(text, one, program, ()) for one, program in rows)
        self.violations.append(Violation("program-race", detail, witnesses, made_by="the lowering"))

    def _seen(self, text: ExecutedText, address: int, programs: Sequence[int]) -> AddressWatch:
        """Who accesses an address, when these programs are executed."""
        inputs = self._inputs(text)
        watch = AddressWatch(address, Arguments(text.module, inputs, argument_paths(self.capture)))
        with suppress(WrongProgram):  # where the run before ended, too
            self._execute(text, inputs, Tracer(text.module, text.slices, watch), programs)
        return watch

    def _is_equal(self, text: ExecutedText, conflict: Conflict, first: int, second: int) -> bool:
        """Whether two programs leave the same bytes wherever both write, each run alone, with all values computed."""
        left: list[dict[int, int]] = []
        whole = replace(text.slices, skipped=frozenset())
        for program in (first, second):
            inputs = captured_inputs(self.capture, self.values)
            written = WrittenBytes()
            tracer = Tracer(text.module, whole, written)
            try:
                self._execute(text, inputs, tracer, [program])
            except IrscopeError:
                return False
            left.append(written.contents)
        both = left[0].keys() & left[1].keys()
        return conflict.address in both and all(left[0][address] == left[1][address] for address in both)

    # ── threads and passes ────────────────────────────────────────────────────────────────────────────────────

    def _check_threads(self) -> None:
        final = self.capture.texts.get("ttgir")
        if not final or (self.proved and not self.programs and not uses_shared(self.capture)):
            return
        text = self._text(final)
        # Every kernel once, for what waits in vain: the others only where threads may meet.
        self._run(text, Listener, [0])
        own = sorted(self._own)
        each = self._each
        if sync_operations(text.module):
            # Where atomic operations order programs, each runs alone, in memory of its own: large tensors cost more
            # than the accesses.
            record = self.capture.launch.record
            each += sum(one.storage_bytes or 0 for one in record.arguments) // _BYTES_PER_ELEMENT if record else 0
            each *= self.all_programs if self._waits else 1
        most = len(own) if self.elements is None else max(self.elements // each, 1)
        own = [own[place] for place in spread_evenly(len(own), most)]
        groups = [[program] for program in own] if sync_operations(text.module) else [own]
        for programs in groups if own else ():
            if not self.violations:
                self._check_some(text, programs)
        left = len(self._own) - len(own)
        if left and not self.violations:
            self.undecided.append(
                f"{left} more programs read addresses that they write, and their threads were not followed "
                "(--all-programs follows them)"
            )

    def _check_shared(self) -> None:
        texts = self.capture.texts
        code = code_of_threads(self.capture)
        if code is None or "ttgir" not in texts:
            wanted = "PTX" if self.capture.target.backend == "cuda" else "LLVM IR"
            self.shared = f"not checked: the capture has no {wanted}"
            return
        if not uses_shared(self.capture):
            self.shared = "not used"
            return
        text = self._text(texts["ttgir"])
        verifier = self._cta(text, code)
        inputs = verifier.inputs
        programs, most = [0], self._most_instructions
        if self.elements is None:
            programs = spread_evenly(self.all_programs, _MOST_CTAS)
        stuck = any(one.kind == "never-ends" for one in self.violations)
        if self._waits and not stuck:
            # What a program waits for is there when all have ended: the CTA finds the memory that they leave.
            run(text.module, self.grid, inputs.given)
        for program in programs if not self._waits or not stuck else ():
            try:
                found = [*verifier.violations(program, most)]
            except NotComputed as error:
                names = ", ".join(inputs.made_up)
                why = f"; the elements of {names} were not recorded (record --values)" if names else ""
                raise NotRun(f"{sentence(error)}{why}") from error
            self.violations += [one for one in found if one.kind != "never-ends" or not stuck]
            if self.violations:
                break
        several = f"{len(programs)} of {self.all_programs} programs"
        which = f"program {program_at(0, self.grid)}" if len(programs) == 1 else several
        self.shared = f"{which}, by thread in the {'PTX' if code[1] == 'ptx' else 'LLVM IR'}"

    def _cta(self, text: ExecutedText, code: tuple[str, StageKind]) -> CtaVerifier:
        inputs = self._inputs(text, recorded=True)
        paths = argument_paths(self.capture)
        written = Bounds(text.module, Arguments(text.module, inputs, paths)).written()
        return CtaVerifier(self.capture, self.grid, inputs, paths, written, text.module, code)

    @property
    def _most_instructions(self) -> int:
        """Executed of each CTA."""
        if self.elements is None:
            return 25 * DEFAULT_INSTRUCTIONS
        return DEFAULT_INSTRUCTIONS // (8 if self.elements <= QUICK_ELEMENTS else 1)

    def _reads(self, text: ExecutedText, programs: Sequence[int]) -> ReadsFrom:
        return self._run(text, lambda: ReadsFrom(text.granule, text.origin), programs)

    def _check_some(self, text: ExecutedText, programs: Sequence[int]) -> None:
        def followed() -> _Followed:
            return _Followed(self._threads(text), ReadsFrom(text.granule, text.origin))

        both = self._run(text, followed, programs)
        threads = both.threads
        self._raced = {}
        if threads.without_layout:
            names = ", ".join(sorted(threads.without_layout))
            self.undecided.append(f"which thread does {names}: the layout is not known")
        random = {key for key, one in threads.found.items() if self._is_random(text, one.first, one.second)}
        self._check_order(text, programs, both.reads)
        for key, conflict in threads.found.items():
            if key not in random:
                self._judge(text, conflict, threads)

    def _threads(self, text: ExecutedText) -> ThreadConflicts:
        return ThreadConflicts(text.granule, Owners(self.capture, text.module), self.all_programs)

    @cached_property
    def _barriers(self) -> Barriers:
        return Barriers(self.capture)

    def _check_order(self, text: ExecutedText, programs: Sequence[int], after: ReadsFrom) -> None:
        before = self._reads(self._front, programs)
        if moved_load(before, after, text.granule) is None or text.granule != self._front.granule:
            return
        for label, ir in islice(changed_texts(self.capture), 1, None):
            changed = self._text(ir)
            try:
                reads = self._reads(changed, programs)
            except NotRun:
                continue
            moved = moved_load(before, reads, changed.granule)
            if moved is None or self._is_random(changed, moved.operation):
                continue
            watch = self._seen(changed, moved.address, programs)
            stores = [row for row in watch.seen if row[0].kind == "store"]
            origin = changed.origin(moved.operation)
            loads = [row for row in watch.seen if row[0].kind != "store" and changed.origin(row[0]) == origin]
            rows = [*loads[:1], *stores[:1]] if loads else [(moved.operation, programs[0], ())]
            writes = "write" if moved.before == 1 else "writes"
            detail = (
                f"the load was moved across a store to the same address: {moved.before} {writes} of the program came "
                f"before it, now {moved.after or 'none'}"
            )
            witnesses = tuple(self._witness(changed, *row) for row in rows)
            self.violations.append(Violation("lost-order", detail, witnesses, watch.text, made_by=label))
            return

    def _judge(self, text: ExecutedText, conflict: ThreadConflict, threads: ThreadConflicts) -> None:
        """Ask the assembly whether a barrier stands between two accesses."""
        first, second = (text.origin(operation)[:1] for operation in (conflict.first, conflict.second))
        writes = (conflict.first.kind == "store", conflict.second.kind == "store")
        missing = self._barriers.may_be_missing(first[0], second[0], writes) if first and second else None
        reason = "the assembly was not matched with them"
        if missing and not self._barriers.are_missing(first[0], second[0], writes):
            met = self._meet_in_launch(text, conflict, threads)
            missing, reason = (None, met) if isinstance(met, str) else (met, "")
        if conflict.by_copies and missing is not False:
            reader = conflict.first if conflict.second.kind == "store" else conflict.second
            if stays_in_thread(text.module, reader):
                return
            if any(kind.form == "tensor" for kind in reader.result_types):
                self.undecided.append(
                    f"threads that hold copies of an element read it at {text.place(reader)} with no barrier to the "
                    "store, and pass the value to other threads"
                )
                return
        lanes = max(self.capture.target.warp_size, 1)
        # All threads read a scalar.
        other = lanes if self.capture.launch.option("num_warps", 4) != 1 else 1
        witnesses = tuple(
            replace(
                self._witness(text, operation, conflict.program, element), warp=thread // lanes, lane=thread % lanes
            )
            for operation, owner, element in (
                (conflict.first, conflict.first_thread, ()), (conflict.second, conflict.second_thread, conflict.element)
            )
            for thread in [other if conflict.by_copies and operation.kind != "store" else owner]
        )  # fmt: skip
        if missing is None:
            names = " and ".join(witness.place or witness.operation for witness in witnesses)
            self.undecided.append(f"whether a barrier stands between {names}: {reason}")
        elif missing:
            kinds = [("writes" if one.kind == "store" else "reads") for one in (conflict.first, conflict.second)]
            detail = f"one thread {kinds[0]} an address that another one {kinds[1]}, with no barrier between"
            places = tuple(witness.place for witness in witnesses)
            if places not in self._told:
                self._told.add(places)
                made_by = self._first_with(conflict) or "the lowering"
                self.violations.append(Violation("thread-race", detail, witnesses, made_by=made_by))

    def _meet_in_launch(self, text: ExecutedText, conflict: ThreadConflict, threads: ThreadConflicts) -> bool | str:
        """Whether the accesses of two lines race in the code as the launch executes it; a text says why it is open.

        Some path without a barrier leads from one to the other, and some with one: the launch may never take the first.
        """
        lines = frozenset(text.place(one) for one in (conflict.first, conflict.second))
        code = code_of_threads(self.capture)
        if code is None:
            return "the capture has no code of threads"
        known = {frozenset(text.place(one) for one in (row.first, row.second)) for row in threads.found.values()}
        for program, addresses in threads.places.items():
            if program not in self._raced:
                verifier = self._cta(text, code)
                try:
                    self._raced[program] = verifier.global_races(
                        program, addresses, text.granule, self._most_instructions
                    )
                except IrscopeError as error:
                    self._raced[program] = sentence(error)
            raced = self._raced[program]
            if isinstance(raced, str) or lines in raced:
                return raced if isinstance(raced, str) else True
            if not known.issuperset(raced):
                return "its threads race in the assembly, at lines that were not matched with the TTGIR"
        return "more programs do it than are executed by thread" if threads.has_more else False

    def _first_with(self, conflict: ThreadConflict) -> str:
        """The first pass after which the accesses of two lines are done by different threads.

        The kernel, where they are so in the first IR that has threads: no pass parted them.
        """
        final = self._text(self.capture.texts["ttgir"])
        wanted = [final.place(operation) for operation in (conflict.first, conflict.second)]
        had_threads = False
        for label, ir in changed_texts(self.capture):
            text = self._text(ir)
            if text.module.option("num-warps") is None:
                continue
            made_by, had_threads = label if had_threads else KERNEL, True
            threads = self._threads(text)
            inputs = self._inputs(text)
            listener = OfPrograms(threads, [conflict.program])
            tracer = Tracer(text.module, text.slices, listener)
            try:
                self._execute(text, inputs, tracer, self._together([conflict.program]))
            except IrscopeError:
                continue
            places = [[text.place(one.first), text.place(one.second)] for one in threads.found.values()]
            if wanted in places:
                return made_by
        return ""

"""The threads of an AMD GPU, from LLVM IR, in instructions of PTX, so that one machine executes both.

A vector is one register for each element, a phi node copies on the edges that lead to it, and what has no counterpart
(floats, shuffles of data) leaves its result undefined. Sources: "LLVM Language Reference"; "User Guide for AMDGPU
Backend", LLVM IR Intrinsics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irscope.ir.asm.instructions import CodeLabel, Function, Instruction
from irscope.ir.asm.readers import PtxFunction, parse_llvm, symbol_of
from irscope.ir.mlir.tokens import split_commas

_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_FLAGS = frozenset(
    ["nuw", "nsw", "exact", "disjoint", "samesign", "nneg", "inbounds", "nusw", "fast", "volatile", "atomic"]
)
_ARITHMETIC = {
    "add": "add.s{}", "sub": "sub.s{}", "mul": "mul.lo.s{}", "and": "and.s{}", "or": "or.s{}", "xor": "xor.s{}",
    "shl": "shl.s{}", "lshr": "shr.u{}", "ashr": "shr.s{}", "sdiv": "div.s{}", "udiv": "div.u{}", "srem": "rem.s{}",
    "urem": "rem.u{}", "smin": "min.s{}", "smax": "max.s{}", "umin": "min.u{}", "umax": "max.u{}",
}  # fmt: skip
_OF_BITS = {"bitreverse": "brev.b{}", "ctpop": "popc.b{}"}
"""What depends on the exact width, such as of `i3`."""
_IDS = {
    f"llvm.amdgcn.{name}.id.{axis}": f"%{register}.{axis}"
    for name, register in (("workitem", "tid"), ("workgroup", "ctaid"))
    for axis in "xyz"
}
_ATOMICS = {
    "add": "add", "and": "and", "or": "or", "max": "max", "min": "min", "umax": "max", "umin": "min", "xchg": "exch",
    "cas": "cas",
}  # fmt: skip
"""Operation of an atomicrmw → that of an atom."""
_GROUPS = {
    "llvm.amdgcn.asyncmark": "cp.async.commit_group", "llvm.amdgcn.wait.asyncmark": "cp.async.wait_group",
}  # fmt: skip
"""Of asynchronous copies to shared memory."""


def llvm_threads(text: str, name: str, threads: int) -> PtxFunction | None:
    """A kernel of a module of LLVM IR for `threads` threads; None if the module has no such kernel."""
    function = next((one for one in parse_llvm(text) if one.name == name), None)
    header = next((line for line in text.splitlines() if line.startswith("define ") and symbol_of(line) == name), "")
    return None if function is None else _Translation(function, header, threads).function()


_Phi = tuple[str, str, Mapping[str, str]]


@dataclass
class _Translation:
    source: Function
    header: str
    threads: int
    code: list[Instruction] = field(default_factory=list[Instruction])
    labels: list[CodeLabel] = field(default_factory=list[CodeLabel])
    line: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Register → how many elements it has, of those that are vectors."""
    grid: dict[str, int] = field(default_factory=dict[str, int])
    """Register → the byte of the implicit arguments, which begin with the number of programs, that it points to."""
    exchanged: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Result of a cmpxchg → the type and the expected value."""
    block: str = ""
    phis: dict[str, list[_Phi]] = field(default_factory=dict[str, list["_Phi"]])
    """Block → the (register, type, block before → value) of each of its phi nodes."""

    def function(self) -> PtxFunction:
        # define amdgpu_kernel void @k(ptr addrspace(1) inreg %0, i32 inreg %6) local_unnamed_addr #0 {
        words = [one.split() for one in split_commas(_inside(self.header)) if one]
        arguments = [(one[0], one[-1]) for one in words]
        names = tuple((f"argument {place}", "") for place in range(len(arguments)))
        for (kind, register), (name, _) in zip(arguments, names, strict=True):
            if kind not in ("float", "half", "bfloat", "double"):
                self.emit("ld.param.s64" if kind == "ptr" else f"ld.param.s{kind[1:]}", register, f"[{name}]")
        places = {label.index: label.name for label in self.source.labels}
        self._read_phis(places)
        for index, item in enumerate(self.source.instructions):
            if index in places:
                self.block = places[index]
                self.labels.append(CodeLabel(self.block, len(self.code)))
            self.line = item.line
            if item.opcode != "phi":
                result, rest = _taken_apart(item)
                self._translate(result, item, _without_flags(rest))
        return PtxFunction(
            self.source.name, tuple(self.code), tuple(self.labels), names, directives=(f"reqntid {self.threads}",)
        )

    def emit(self, opcode: str, *operands: str, predicate: str = "") -> None:
        self.code.append(Instruction(opcode, operands, predicate, line=self.line))

    def _read_phis(self, places: Mapping[int, str]) -> None:
        known, block = set(places.values()), ""
        for index, item in enumerate(self.source.instructions):
            block = places.get(index, block)
            if item.opcode != "phi":
                continue
            # %9 = phi i32 [ %8, %.lr.ph ], [ 0, %2 ]
            result, rest = _taken_apart(item)
            kind, _, rest = rest.partition(" [")
            rows = [split_commas(one.strip("[] ")) for one in split_commas(f"[{rest}")]
            # The first block has no label in the text.
            values = {name if (name := before.strip('%"')) in known else "": value for value, before in rows}
            self._many(result, kind)
            self.phis.setdefault(block, []).append((result, kind, values))

    # ── values ────────────────────────────────────────────────────────────────────────────────────────────────

    def _many(self, register: str, kind: str) -> int:
        self.counts[register] = _count(kind)
        return self.counts[register]

    def _elements(self, value: str, count: int) -> list[str]:
        if value.startswith("<"):
            return [_number(part.rpartition(" ")[2]) for part in split_commas(value[1:-1])]
        if value.startswith("splat "):
            # splat (i32 5)
            return [_number(value.rstrip(")").rpartition(" ")[2])] * count
        if value.startswith("%") and self.counts.get(value, 1) > 1:
            return [f"{value}:{place}" for place in range(count)]
        if value.startswith("getelementptr"):
            # getelementptr inbounds nuw (i8, ptr addrspace(3) @global_smem, i32 4096)
            kind, _, index = split_commas(_inside(value))
            return [str(int(index.split()[1]) * _size(kind))] * count
        return [_number(value)] * count

    def _each(self, opcode: str, result: str, kind: str, *values: str) -> None:
        count = self._many(result, kind)
        columns = [self._elements(value, count) for value in values]
        for own, *operands in zip(self._elements(result, count), *columns, strict=True):
            self.emit(opcode, own, *operands)

    # ── instructions ──────────────────────────────────────────────────────────────────────────────────────────

    def _translate(self, result: str, item: Instruction, rest: str) -> None:
        opcode = item.opcode
        operands = [one for one in split_commas(rest) if not one.startswith(("!", "align "))]
        if opcode in ("br", "ret", "unreachable"):
            self._branch(item, rest)
        elif opcode in _ARITHMETIC:
            kind, _, left = _typed(operands[0])
            self._each(_ARITHMETIC[opcode].format(_bits(kind)), result, kind, left, operands[1])
        elif opcode == "call":
            self._call(result, rest)
        elif opcode == "icmp":
            # icmp slt i32 %21, %6
            predicate, _, first = _without_flags(operands[0]).partition(" ")
            kind, _, left = _typed(first)
            sign = "u" if predicate[0] == "u" or kind.startswith("ptr") else "s"
            opcode = f"setp.{predicate[-2:]}.{sign}{_bits(kind)}"
            self._each(opcode, result, _of_shape(kind, "i1"), left, operands[1])
        elif opcode == "select":
            (_, _, condition), (kind, _, left), (_, _, right) = map(_typed, operands[:3])
            self._each(f"selp.b{_bits(kind)}", result, kind, left, right, condition)
        elif opcode in ("zext", "sext", "trunc"):
            self._convert(result, operands[0], "u" if opcode == "zext" else "s")
        elif opcode in ("bitcast", "freeze", "inttoptr", "ptrtoint", "addrspacecast"):
            source, _, target = operands[0].rpartition(" to ")
            kind, _, value = _typed(source or operands[0])
            if self._many(result, target or kind) == self.counts.get(value, 1):
                self._each("mov.b64", result, target or kind, value)
        elif opcode == "getelementptr":
            self._point(result, operands)
        elif opcode in ("load", "store"):
            self._access(opcode, result, operands)
        elif opcode in ("insertelement", "extractelement", "shufflevector"):
            self._rearrange(opcode, result, operands)
        elif opcode in ("atomicrmw", "cmpxchg"):
            self._atomic(result, operands, is_exchange=opcode == "cmpxchg")
        elif opcode == "extractvalue" and (parts := operands[0].rpartition(" ")[2]) in self.exchanged:
            # What a cmpxchg leaves: the value before, and whether it was the expected one.
            kind, expected = self.exchanged[parts]
            if operands[1] == "0":
                self._each("mov.b64", result, kind, parts)
            else:
                self._each(f"setp.eq.s{_bits(kind)}", result, "i1", parts, expected)
        elif opcode == "switch":
            self.emit("call", "(switch)")
        elif result:
            self._many(result, _typed(rest)[0])

    def _atomic(self, result: str, operands: Sequence[str], *, is_exchange: bool) -> None:
        # atomicrmw add ptr addrspace(1) %5, i32 1 syncscope("agent") acq_rel, align 4
        # cmpxchg ptr addrspace(1) %5, i32 0, i32 1 syncscope("agent") acq_rel monotonic, align 4
        first = _without_flags(operands[0])
        name, _, place = ("cas", "", first) if is_exchange else first.partition(" ")
        _, is_shared, pointer = _typed(place)
        kinds = [_typed(one)[0] for one in operands[1:2]]
        values = [_number(_typed(one)[2].partition(" ")[0]) for one in operands[1 : 3 if is_exchange else 2]]
        sign = "b" if name in ("cas", "xchg") else "u" if name in ("umax", "umin") else "s"
        is_known = name in _ATOMICS and kinds[0][:1] == "i"
        # What another one leaves is not followed.
        what = f"{_ATOMICS[name]}.{sign}{_bits(kinds[0])}" if is_known else "add.f32"
        space = "shared" if is_shared else "global"
        if result:
            self._many(result, kinds[0])
        if result and is_exchange:
            self.exchanged[result] = kinds[0], values[0]
        self.emit(f"atom.{space}.{what}", result or "%none", f"[{pointer}]", *(values if is_known else ["0"]))

    def _convert(self, result: str, text: str, sign: str) -> None:
        # zext <2 x i16> %29 to <2 x i32>
        source, _, target = text.rpartition(" to ")
        kind, _, value = _typed(source)
        if kind == _of_shape(kind, "i1"):
            self._each("selp.s64", result, target, "1" if sign == "u" else "-1", "0", value)
        elif target == _of_shape(target, "i1"):
            self._each("and.b64", result, target, value, "1")
        else:
            self._each(f"cvt.s{_bits(target)}.{sign}{min(_bits(kind), _bits(target))}", result, target, value)

    def _point(self, result: str, operands: Sequence[str]) -> None:
        # getelementptr inbounds nuw i8, ptr addrspace(3) @global_smem, i32 %54
        kind, size = _without_flags(operands[0]), _size(_without_flags(operands[0]))
        pointer, indices = _typed(operands[1])[2], [_typed(one)[2] for one in operands[2:]]
        self._many(result, "ptr")
        if pointer in self.grid and indices[0].isdecimal():
            self.grid[result] = self.grid[pointer] + int(indices[0]) * size
            return
        for index in indices:
            self.emit("mad.lo.s64", result, index, str(size), *self._elements(pointer, 1))
            pointer, kind = result, kind[1:-1].partition(" x ")[2] if kind[0] in "<[" else ""
            size = _size(kind)

    def _access(self, opcode: str, result: str, operands: Sequence[str]) -> None:
        # load <1 x float>, ptr addrspace(3) %59, align 4        store i32 %5, ptr addrspace(3) %6, align 4
        place = 1 if opcode == "load" else next(at for at, one in enumerate(operands) if at and "ptr" in one)
        kind, is_shared, pointer = _typed(operands[place])
        name = "shared" if is_shared else "global"
        (address,) = self._elements(pointer, 1)
        if pointer in self.grid and self.grid[pointer] in (0, 4, 8):
            self._each("mov.u32", result, "i32", f"%nctaid.{'xyz'[self.grid[pointer] // 4]}")
        elif opcode == "load":
            kind = _without_flags(operands[0])
            self._moved("ld", name, kind, address, self._elements(result, self._many(result, kind)))
        else:
            kind, _, value = _typed(", ".join(operands[:place]))
            # What global memory holds is not followed.
            elements = self._elements(value, _count(kind)) if is_shared else ["0"] * _count(kind)
            self._moved("st", name, kind, address, elements)

    def _rearrange(self, opcode: str, result: str, operands: Sequence[str]) -> None:
        (kind, _, value), (second_kind, _, second) = map(_typed, operands[:2])
        elements = self._elements(value, _count(kind))
        last = operands[-1].rpartition(" ")[2]
        if opcode == "extractelement":
            self._many(result, "")
            if last.isdecimal():
                self.emit("mov.b64", result, elements[int(last)])
            return
        if opcode == "insertelement":
            chosen = [second if str(at) == last else one for at, one in enumerate(elements)]
        else:
            # shufflevector <4 x float> %28, <4 x float> poison, <2 x i32> <i32 2, i32 3>
            both = [*elements, *self._elements(second, len(elements))]
            kind, _, places = _typed(operands[2])
            wanted = self._elements(places, _count(kind))
            chosen = [both[int(at)] if at.isdecimal() else "%poison" for at in wanted]
        self._many(result, f"<{len(chosen)} x {second_kind}>")
        for own, one in zip(self._elements(result, len(chosen)), chosen, strict=True):
            self.emit("mov.b64", own, one)

    def _branch(self, item: Instruction, rest: str) -> None:
        if item.opcode != "br":
            return self.emit("ret" if item.opcode == "ret" else "trap")
        targets = [label for label, _ in item.branch.targets] if item.branch is not None else []
        conditions = [f"@{rest.split(',')[0].split()[1]}", ""] if len(targets) > 1 else [""]
        stubs: list[tuple[str, list[tuple[str, str, str]]]] = []
        for target, condition in zip(targets, conditions, strict=True):
            copies = [(register, kind, values[self.block]) for register, kind, values in self.phis.get(target, ())]
            label = f"{self.block}>{target}" if copies and condition else target
            if copies and not condition:
                self._copy(copies)
            elif copies:
                stubs.append((target, copies))
            self.emit("bra", label, predicate=condition)
        for target, copies in stubs:
            self.labels.append(CodeLabel(f"{self.block}>{target}", len(self.code)))
            self._copy(copies)
            self.emit("bra", target)
        return None

    def _copy(self, copies: Sequence[tuple[str, str, str]]) -> None:
        """What phi nodes take on, all at once."""
        targets = {register for register, _, _ in copies}
        late = [(register, kind, value) for register, kind, value in copies if value in targets]
        for register, kind, value in late:
            self._each("mov.b64", f"{register}'", kind, value)
        for register, kind, value in copies:
            self._each("mov.b64", register, kind, f"{register}'" if (register, kind, value) in late else value)

    def _call(self, result: str, rest: str) -> None:
        before = rest.partition('"')[0]
        if before.endswith(" asm "):
            # float asm "v_exp_f32 $0, $1", "=v,v"(float %3): what it computes is not known.
            self._many(result, before.removesuffix(" asm "))
            return
        callee = symbol_of(rest)
        arguments = _inside(rest.partition("@")[2])
        values = [_typed(one)[2] for one in split_commas(arguments) if one]
        kind = rest.split()[0] if not rest.startswith(("<", "ptr")) else rest[: rest.index("@")].strip()
        name = callee.split(".")[1] if callee.startswith("llvm.") else ""
        if callee in _IDS:
            self.emit("mov.u32", result, _IDS[callee])
        elif name in _ARITHMETIC:
            self._each(_ARITHMETIC[name].format(_bits(kind)), result, kind, values[0], values[1])
        elif name in _OF_BITS:
            width = kind.rstrip(">").rpartition("i")[2]
            self._each(_OF_BITS[name].format(width), result, kind, values[0])
        elif callee == "llvm.amdgcn.s.barrier":
            self.emit("bar.sync", "0")
        elif callee.startswith(("llvm.amdgcn.readfirstlane", "llvm.amdgcn.readlane")):
            # The lane is the same for all threads.
            self.emit(f"readlane.s{_bits(kind)}", result, values[0], values[1] if len(values) > 1 else "0")
        elif callee.startswith("llvm.amdgcn.make.buffer.rsrc"):
            self.emit("mov.b64", result, values[0])
        elif callee == "llvm.amdgcn.implicitarg.ptr":
            self.grid[result] = 0
        elif callee.startswith("llvm.amdgcn.raw.ptr.buffer.store"):
            stored = _typed(split_commas(arguments)[0])[0]
            self._moved("st", "global", stored, self._of_buffer(*values[1:3]), ["0"] * _count(stored))
        elif callee.startswith("llvm.amdgcn.raw.ptr.buffer.atomic"):
            self.emit("atom.global.add.f32", result or "%none", f"[{values[1]}]", "0")
        elif callee.startswith("llvm.amdgcn.raw.ptr.buffer.load") and ".lds" not in callee:
            address = self._of_buffer(*values[:2])
            self._moved("ld", "global", kind, address, self._elements(result, self._many(result, kind)))
        elif callee.endswith(".load.async.lds"):
            # Each lane of a wave writes behind the one before.
            self.emit("and.b32", "%lane", "%tid.x", "63")
            self.emit("mad.lo.s64", "%into", "%lane", values[2], *self._elements(values[1], 1))
            self.emit("cp.async.ca.shared.global", "[%into+0]", "[0]", values[2])
        elif callee in _GROUPS:
            self.emit(_GROUPS[callee], *values)
        elif callee.startswith("llvm.amdgcn.ds.read.tr"):
            # What each lane gets was read by others.
            (address,) = self._elements(values[0], 1)
            self._moved("ld", "shared", kind, address, [f"%read:{at}" for at in range(self._many(result, kind))])
        elif ".s.barrier" in callee or "addrspace(3)" in arguments or not callee.startswith(("llvm.", "__")):
            self.emit("call", f"({callee or 'inline assembly'})")
        elif result:
            self._many(result, kind)

    def _of_buffer(self, base: str, offset: str) -> str:
        self.emit("cvt.u64.u32", f"{base}@", offset)
        self.emit("add.s64", f"{base}@", f"{base}@", base)
        return f"{base}@"

    def _moved(self, name: str, space: str, kind: str, address: str, elements: Sequence[str]) -> None:
        size = _size(kind) // len(elements)
        step = next(width for width in (8, 4, 2, 1) if len(elements) % width == 0)
        for first in range(0, len(elements), step):
            part = elements[first : first + step]
            text = f"{{{', '.join(part)}}}" if step > 1 else part[0]
            opcode = f"{name}.{space}.{f'v{step}.' if step > 1 else ''}b{8 * size}"
            place = f"[{address}+{first * size}]"
            self.emit(opcode, *((text, place) if name == "ld" else (place, text)))


def _without_flags(text: str) -> str:
    words = text.split(" ")
    while words and words[0] in _FLAGS:
        words.pop(0)
    return " ".join(words)


def _taken_apart(item: Instruction) -> tuple[str, str]:
    """The result of an instruction, and what stands behind its opcode."""
    # %15 = tail call i32 @f(i32 %14)      store <1 x float> %56, ptr addrspace(3) %55, align 4
    code = item.operands[0].strip()
    result, is_given, rest = code.partition(" = ") if code.startswith("%") else ("", "", "")
    return result, (rest if is_given else code).partition(item.opcode)[2].strip()


def _inside(text: str) -> str:
    """What stands in the first parentheses."""
    begin = text.index("(") + 1
    depth = 1
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return text[begin:at]
    return text[begin:]


def _typed(text: str) -> tuple[str, bool, str]:
    """The type and the value of an operand, and whether it points to shared memory."""
    text = _without_flags(text)
    # ptr addrspace(3) nonnull %55      <2 x float> zeroinitializer      i32 %14
    ends = {"<": ">", "[": "]"}.get(text[:1], ")" if text.startswith("ptr addrspace") else "")
    end = text.index(ends) + 1 if ends else len(text.partition(" ")[0])
    kind, value = text[:end], text[end:].strip()
    while value.partition(" ")[0] in ("noundef", "nonnull", "inreg"):
        value = value.partition(" ")[2]
    return kind, kind == "ptr addrspace(3)", value


def _number(text: str) -> str:
    return {"true": "1", "false": "0", "zeroinitializer": "0", "null": "0", "poison": "%poison"}.get(text, text)


def _size(kind: str) -> int:
    """Bytes of a type; 0 for an unknown one."""
    if kind[:1] in ("<", "["):
        count, _, element = kind[1:-1].partition(" x ")
        return int(count) * _size(element)
    if kind.startswith("ptr"):
        return 4 if "(3)" in kind else 8
    return max(int(kind[1:]) // 8, 1) if kind[:1] == "i" and kind[1:].isdecimal() else _SIZES.get(kind, 0)


def _count(kind: str) -> int:
    """Elements of a vector's type; 1 of another one."""
    return int(kind[1:].partition(" ")[0]) if kind[:1] == "<" else 1


def _of_shape(kind: str, element: str) -> str:
    return f"<{_count(kind)} x {element}>" if kind[:1] == "<" else element


def _bits(kind: str) -> int:
    return max(8 * _size(kind) // _count(kind), 8)

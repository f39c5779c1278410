"""The contents of one operation's text besides its name: the names of its operands, attributes, and types of results.

Works on templates, texts in which each value is a hole: all operations with one template share what is read of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

from irscope.ir.mlir.attributes import dictionary_span, parse_entries
from irscope.ir.mlir.operations import OperationInfo, operation_info
from irscope.ir.mlir.tokens import behind_arrow, closing, last_mark, parameters_of, split_commas, split_types

VALUE, LABEL = "\x01", "\x02"


@dataclass(frozen=True, slots=True)
class Form:
    """The contents of one template; operands are numbered in the order of the text."""

    order: tuple[int, ...] = ()
    """The operands as the generic form numbers them."""
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Name of an operand → the operands it stands for: none, one, or those of a list."""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Attribute → its text; that of a unit is empty."""
    results: tuple[str, ...] = ()
    """The type of each result; fewer if the text does not state them."""
    branches: tuple[tuple[int, ...], ...] = ()
    """For each successor, the operands that are passed to it."""
    arguments: tuple[str, ...] = ()
    """The types of the arguments of its first block, where its own line states them without their names."""
    inputs: tuple[str, ...] = ()
    """The types of the operands in the order of the text, if it states each: the same as their definitions have."""
    properties: frozenset[str] = frozenset()
    """Those of the attributes that the generic form prints as properties."""
    is_generic: bool = False
    is_read: bool = True
    """Whether the text has the form that the table gives the operation."""


@dataclass(slots=True)
class _Text:
    """An operation's text on its way through a reader."""

    name: str
    info: OperationInfo | None
    count: int
    body: str
    """What follows the name, without attribute dictionary and types."""
    types: str
    attributes: dict[str, str]

    @property
    def operands(self) -> int:
        return self.body.count(VALUE)


@lru_cache(maxsize=8192)
def read_form(name: str, head: str, closing_line: str, count: int) -> Form:
    """Read the template of an operation: its lines up to its first region, and the one that ends its last region.

    Never raises: what cannot be read is left out, and `is_read` is false.
    """
    info = operation_info(name)
    text = head.partition(" = ")[2] if head.startswith(VALUE) and count else head
    if text.startswith('"'):
        return _generic(name, info, text, closing_line, count)
    text = text.removeprefix("module" if name == "builtin.module" else name)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(_Text(name, info, count, text, closing_line, {}))
    has_region = text.endswith("{")
    attributes: dict[str, str] = {}
    if has_region:
        text = text[:-1].rstrip()
    tail = ""
    if closing_line:
        tail, types = split_types(closing_line[1:].lstrip(")"))
    else:
        text, types = split_types(text)
    text = _take_dictionary(text, attributes)
    _take_dictionary(tail, attributes)
    return _custom(_Text(name, info, count, text.strip(), types, attributes))


def _take_dictionary(text: str, attributes: dict[str, str]) -> str:
    """Move the entries of the attribute dictionary of a text into `attributes`; returns the rest."""
    span = dictionary_span(text) if "{" in text else None
    if span is None:
        return text
    start, end = span
    attributes.update(parse_entries(text[start + 1 : end - 1]))
    before = text[:start].rstrip().removesuffix("attributes").rstrip()
    after = text[end:].lstrip()
    # ttng.barrier_expect %barrier, 8192 {async_task_id = array<i32: 0>}, %true
    space = "" if after.startswith(",") else " "
    return f"{before}{space}{after}".rstrip()


# ── the custom form ───────────────────────────────────────────────────────────────────────────────────────────────


def _custom(text: _Text) -> Form:
    info, body = text.info, text.body
    count = text.operands
    plain = tuple(range(count))
    if info is None:
        return Form(plain, {}, text.attributes, _result_types(text), is_read=False)
    if not info.form:
        return Form(plain, {}, text.attributes, _result_types(text))
    pattern = _pattern(info.form)
    match = pattern.match(body)
    if match is None:
        return Form(plain, {}, text.attributes, _result_types(text), is_read=False)
    groups: dict[str, tuple[int, ...]] = {}
    for key, written in match.groupdict().items():
        name, kind = key[2:], key[:2]
        if kind == "v_":
            start = body.count(VALUE, 0, match.start(key)) if written is not None else 0
            groups[name] = tuple(range(start, start + written.count(VALUE))) if written else ()
        elif kind == "p_":
            first, _, second = name.partition("__")
            start, stop = match.span(key)
            places = range(body.count(VALUE, 0, start), body.count(VALUE, 0, stop))
            groups[first], groups[second] = tuple(places[::2]), tuple(places[1::2])
        elif kind == "a_" and written:
            text.attributes.setdefault(name, written.strip())
        elif kind == "u_" and written:
            text.attributes.setdefault(name, "")
    results = _result_types(text)
    inputs = _operand_types(text, count)
    order = tuple(place for name in info.order for place in groups.get(name, ())) if info.order else plain
    if len(order) != count:
        order = plain
    return Form(order, groups, text.attributes, results, inputs=inputs)


# $ptr   $tokens*   $barriers&preds   @axis   @@callee   @~value   !exact:isExact   ~   {   }
_TOKEN = re.compile(
    r"\$(?P<operand>\w+)(?:(?P<many>\*)|&(?P<paired>\w+))?|@(?P<mode>[@~]?)(?P<attribute>\w+)|!(?P<word>\w+):(?P<unit>\w+)"
    r"|(?P<open>\{)|(?P<close>\})|(?P<any>~)|(?P<blank>\s+)|(?P<text>.)"
)
_INDEX = r"(?:#\d+)?"
_ONE = f"\x01{_INDEX}"
_SCALAR = r'"(?:[^"\\]|\\.)*"|@[\w$.-]+|\[[^\]]*\]|#[\w.]+(?:<[^>]*>)?|<[^>]*>|-?[\w.]+(?: : \w+)?'


@cache
def _pattern(form: str) -> re.Pattern[str]:
    parts: list[str] = []
    for token in _TOKEN.finditer(form):
        if token["paired"]:
            parts.append(rf"(?P<p_{token['operand']}__{token['paired']}>(?:, {_ONE}\[{_ONE}\])*)")
        elif token["operand"]:
            many = rf"(?:{_ONE}(?:, {_ONE})*)?" if token["many"] else _ONE
            parts.append(rf"\s*(?P<v_{token['operand']}>{many})")
        elif token["attribute"]:
            inner = {"@": r'@(?:"[^"]*"|[\w$.-]+)', "~": ".*?", "": _SCALAR}[token["mode"]]
            parts.append(rf"\s*(?P<a_{token['attribute']}>{inner})")
        elif token["word"]:
            parts.append(rf"(?P<u_{token['unit']}>\s*\b{token['word']}\b)?")
        elif token["open"]:
            parts.append("(?:")
        elif token["close"]:
            parts.append(")?")
        elif token["any"]:
            parts.append(".*?")
        elif token["blank"]:
            parts.append(r"\s*")
        else:
            parts.append(re.escape(token["text"]))
    return re.compile("".join(parts) + r"\s*$")


# ── types of results ──────────────────────────────────────────────────────────────────────────────────────────────


def _result_types(text: _Text) -> tuple[str, ...]:
    count, types = text.count, text.types
    if not count:
        return ()
    rule = text.info.results if text.info is not None else ""
    if rule[:1] == "!" or rule in ("i1", "i32", "index"):
        return (rule,) * count
    if rule == "value":
        return (types or "i1",)
    if not types:
        # rocdl.exp2 \1 f32 -> f32
        return _spread(tuple(behind_arrow(text.body)), count)
    if rule[:1] == "?":
        last = split_commas(_sides(types)[1] or types)[-1]
        return ((rule[1:] + last) if last[:1] == "<" else last,) * count
    left, right = _sides(types)
    if rule == "token":
        return (*_types_of(right), *("!ttg.async.token",) * count)[:count]
    if right:
        return _spread(_types_of(right), count)
    parts = _types_of(left)
    if not parts:
        return ()
    if rule == "first":
        return (parts[0],) * count
    if rule == "last":
        return (parts[-1],) * count
    if rule == "pointee":
        return (_pointee(parts[0]),) * count
    if rule == "boolean":
        return (_with_element(parts[0], "i1"),) * count
    if rule == "element":
        return (_element(parts[0]),) * count
    if rule == "member":
        return (_member(parts[0], text.attributes.get("position", "")),) * count
    return _spread(parts, count)


def _operand_types(text: _Text, count: int) -> tuple[str, ...]:
    """The types of the operands; none if the text does not state each."""
    left, right = _sides(text.types)
    # A dot: tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32>
    inputs = _types_of(left.replace(" * ", ", "))
    if len(inputs) == count - 1 and right:
        inputs += _types_of(right)[:1]
    if text.info is not None and text.info.results == "first" and len(inputs) == 1:
        inputs *= count
    return inputs if len(inputs) == count else ()


def _sides(types: str) -> tuple[str, str]:
    """The types on both sides of ` -> ` or ` to `."""
    arrow = last_mark(types, "->")
    if arrow >= 0:
        return types[:arrow].strip(), types[arrow + 2 :].strip()
    left, word, right = types.rpartition(" to ")
    return (left, right) if word else (types, "")


def _types_of(text: str) -> tuple[str, ...]:
    if text.startswith("(") and closing(text, 0) == len(text) - 1:
        text = text[1:-1]
    return tuple(part for part in split_commas(text) if part)


def _spread(types: tuple[str, ...], count: int) -> tuple[str, ...]:
    return types if len(types) == count else types[-1:] * count


def _pointee(text: str) -> str:
    # tensor<64x!tt.ptr<f16>, #blocked>   !tt.ptr<f16, 1>
    start = text.find("!tt.ptr<")
    if start < 0:
        return text
    end = closing(text, start + 7)
    inner = split_commas(text[start + 8 : end])[0]
    return f"{text[:start]}{inner}{text[end + 1 :]}"


# the sizes and the element of "tensor<4x64xf32, #blocked>"
_SHAPED = re.compile(r"(?P<before>(?:tensor|vector)<(?:\d+x)*)(?P<element>[^,]*?(?:<.*>)?)(?P<after>,.*>|>)$")


def _with_element(text: str, element: str) -> str:
    match = _SHAPED.match(text)
    return f"{match['before']}{element}{match['after']}" if match is not None else element


def _element(text: str) -> str:
    match = _SHAPED.match(text)
    return match["element"] if match is not None else text


def _member(text: str, position: str) -> str:
    for index in position.strip("[] ").split(","):
        inner = text.partition("<")[2].removesuffix(">").removeprefix("packed ")
        if text.startswith(("!llvm.struct", "struct")) and index.strip().isdecimal():
            members = _types_of(inner.strip())
            text = members[int(index)] if int(index) < len(members) else ""
        else:
            # !llvm.array<4 x i32>
            text = inner.partition(" x ")[2]
    return (
        text
        if not text or text[0] == "!" or "<" not in text or text.startswith(("vector", "tensor"))
        else f"!llvm.{text}"
    )


# ── the generic form ──────────────────────────────────────────────────────────────────────────────────────────────


def _generic(name: str, info: OperationInfo | None, text: str, closing_line: str, count: int) -> Form:
    opening = text.find("(")
    end = closing(text, opening)
    operands = text.count(VALUE, opening, end)
    rest = text[end + 1 :]
    labels = 0
    if rest.startswith("["):
        stop = closing(rest, 0)
        labels = rest.count(LABEL, 0, stop)
        rest = rest[stop + 1 :]
    attributes: dict[str, str] = {}
    if rest.startswith(" <{"):
        stop = closing(rest, 2)
        attributes.update(parse_entries(rest[3:stop]))
        rest = rest[stop + 2 :]
    properties = frozenset(attributes)
    if closing_line:
        rest = closing_line.removeprefix("})")
    if rest.startswith(" {"):
        stop = closing(rest, 1)
        attributes.update(parse_entries(rest[2:stop]))
        rest = rest[stop + 1 :]
    sizes = _sizes(attributes.get("operandSegmentSizes", ""))
    groups = _named_groups(info, operands, sizes)
    branches: tuple[tuple[int, ...], ...] = ()
    if labels:
        branches = _generic_branches(operands, labels, sizes, _sizes(attributes.get("case_operand_segments", "")))
    results = tuple(behind_arrow(rest))[:count]
    if len(results) == 1 and results[0] == "()":
        results = ()
    order = tuple(range(operands))
    inputs = _types_of(rest.removeprefix(" : ").rpartition(" -> ")[0])
    return Form(order, groups, attributes, results, branches, (), inputs, properties, True, info is not None)


def _sizes(text: str) -> tuple[int, ...]:
    """`array<i32: 1, 0, 2>` → (1, 0, 2)."""
    inner = text.partition(":")[2].rstrip(">")
    return tuple(int(part) for part in inner.split(",") if part.strip().isdecimal())


def _generic_branches(
    operands: int, labels: int, sizes: tuple[int, ...], cases: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    if not sizes:
        return (tuple(range(operands)),) * labels if labels == 1 else ((),) * labels
    counts = list(sizes[1:2]) + list(cases) if cases or labels != len(sizes) - 1 else list(sizes[1:])
    found: list[tuple[int, ...]] = []
    start = sizes[0]
    for size in (counts + [0] * labels)[:labels]:
        found.append(tuple(range(start, start + size)))
        start += size
    return tuple(found)


@cache
def _operand_names(info: OperationInfo) -> tuple[tuple[str, str], ...]:
    """(name, `one`, `optional`, `many` or `perhaps many`) of the operands, as the generic form numbers them."""
    names: dict[str, str] = {}
    depth = 0
    for token in _TOKEN.finditer(info.form):
        depth += bool(token["open"]) - bool(token["close"])
        if token["operand"]:
            is_list = token["many"] or token["paired"]
            absent = "perhaps many" if is_list else "optional"
            names[token["operand"]] = absent if depth else "many" if is_list else "one"
            if token["paired"]:
                names[token["paired"]] = "many"
    return tuple((name, names[name]) for name in (info.order or names) if name in names)


def _named_groups(info: OperationInfo | None, operands: int, sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    names = _operand_names(info) if info is not None else ()
    if len(sizes) != len(names):
        spare = max(operands - sum(kind == "one" for _, kind in names), 0)
        # Several lists without sizes have one size; one that may be absent is, if another one is not.
        certain = [name for name, kind in names if kind == "many"]
        lists = certain or [name for name, kind in names if kind == "perhaps many"]
        counts: list[int] = []
        for name, kind in names:
            size = 1 if kind == "one" else spare // len(lists) if name in lists else 0
            if kind == "optional" and not lists:
                size = min(spare, 1)
                spare -= size
            counts.append(size)
        sizes = tuple(counts)
    groups: dict[str, tuple[int, ...]] = {}
    start = 0
    for (name, _), size in zip(names, sizes, strict=True):
        groups[name] = tuple(range(start, start + size))
        start += size
    return groups


# ── operations whose text has a form of its own ───────────────────────────────────────────────────────────────────


def _region_tail(text: _Text) -> None:
    """Read the dictionary and the types of a closing line, which `types` holds, and those of the head."""
    tail, types = split_types(text.types[1:].lstrip(")")) if text.types else ("", "")
    _take_dictionary(tail, text.attributes)
    text.types = types
    if text.body.endswith("{"):
        text.body = text.body[:-1].rstrip()


# @name(   public @name(   local_unnamed_addr fastcc @name(
_FUNCTION = re.compile(r'\s*(?P<words>[\w ]*?)\s*@(?P<name>"[^"]*"|[\w$.-]+)\(')


def _function(text: _Text) -> Form:
    _region_tail(text)
    match = _FUNCTION.match(text.body)
    if match is None:
        return Form(is_read=False)
    opening = match.end() - 1
    end = closing(text.body, opening)
    rest = _take_dictionary(text.body[end + 1 :], text.attributes)
    for word in match["words"].split():
        key = (
            "sym_visibility" if word in ("public", "private", "nested") else "linkage" if word in _LINKAGES else "CConv"
        )
        text.attributes[key] = f'"{word}"' if key == "sym_visibility" else word
    text.attributes["sym_name"] = f'"{match["name"].strip(chr(34))}"'
    parameters = split_commas(text.body[opening + 1 : end])
    types = [part.partition(": ")[2] if part.startswith(VALUE) else part for part in parameters if part]
    entries = [_take_dictionary(one, {}) for one in types]
    inputs = ", ".join(entries)
    outputs = rest.strip().removeprefix("->").strip()
    if text.name == "llvm.func":
        short = ", ".join(one.removeprefix("!llvm.") for one in entries)
        text.attributes["function_type"] = f"!llvm.func<{outputs.removeprefix('!llvm.') or 'void'} ({short})>"
    else:
        text.attributes["function_type"] = f"({inputs}) -> {outputs or '()'}"
    written = ["{" + ", ".join(_pairs(one)) + "}" for one in types]
    if any(one != "{}" for one in written):
        text.attributes["arg_attrs"] = f"[{', '.join(written)}]"
    return Form((), {}, text.attributes, arguments=tuple(entries))


_LINKAGES = frozenset((
    "internal", "linkonce", "linkonce_odr", "weak", "weak_odr", "common", "appending", "extern_weak",
    "available_externally", "external",
))  # fmt: skip


def _pairs(text: str) -> list[str]:
    found: dict[str, str] = {}
    _take_dictionary(text, found)
    return [f"{name} = {value}" if value else name for name, value in found.items()]


def _for(text: _Text) -> Form:
    # scf.for \1 = \1 to \1 step \1 iter_args(\1 = \1, …) -> (…) : i32 {
    _region_tail(text)
    body, kind = split_types(text.body)
    results = tuple(behind_arrow(body))
    if "unsigned" in body[:12]:
        text.attributes["unsignedCmp"] = ""
    initial = tuple(range(3, 3 + len(results)))
    groups = {"lowerBound": (0,), "upperBound": (1,), "step": (2,), "initArgs": initial}
    return Form(tuple(range(3 + len(results))), groups, text.attributes, results, arguments=(kind or "index", *results))


def _while(text: _Text) -> Form:
    _region_tail(text)
    _, types = split_types(text.body)
    left, right = _sides(types)
    inputs = _types_of(left)
    order = tuple(range(len(inputs)))
    return Form(order, {"inits": order}, text.attributes, _types_of(right) if right != "()" else (), arguments=inputs)


def _branch(text: _Text) -> Form:
    # \1, \2(\1 : i32), \2 {weights}   \1 : i32, [ default: \2(\1 : i32), 7: \2 ]
    body = _take_dictionary(text.body, text.attributes)
    branches: list[tuple[int, ...]] = []
    values: list[str] = []
    seen = 0
    position = 0
    for position, character in enumerate(body):
        if character == VALUE:
            seen += 1
        elif character == LABEL:
            before = body[:position].rstrip()
            if before.endswith(":"):
                values.append(before[:-1].replace("[", " ").replace(",", " ").split()[-1])
            here: tuple[int, ...] = ()
            if body[position + 1 : position + 2] == "(":
                end = closing(body, position + 1)
                here = tuple(range(seen, seen + body.count(VALUE, position, end)))
            branches.append(here)
    cases = [value for value in values if value != "default"]
    if cases:
        text.attributes["case_values"] = f"[{', '.join(cases)}]"
    first = min((branch[0] for branch in branches if branch), default=seen)
    groups = {"condition" if text.name.endswith("cond_br") else "flag": (0,)} if first else {}
    return Form(tuple(range(seen)), groups, text.attributes, branches=tuple(branches))


def _getelementptr(text: _Text) -> Form:
    # inbounds \1[\1, 4] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    body, types = split_types(text.body)
    body = _take_dictionary(body, text.attributes)
    right = split_commas(_sides(types)[1])
    flags, _, indices = body.partition(VALUE)
    inside = indices[indices.find("[") + 1 : indices.rfind("]")]
    dynamic = "-2147483648"
    constants = [dynamic if VALUE in part else part for part in split_commas(inside) if part]
    text.attributes["rawConstantIndices"] = f"array<i32: {', '.join(constants)}>"
    text.attributes["elem_type"] = right[1] if len(right) > 1 else ""
    if flags.strip():
        text.attributes["noWrapFlags"] = flags.strip()
    order = tuple(range(body.count(VALUE)))
    groups = {"base": order[:1], "dynamicIndices": order[1:]}
    return Form(order, groups, text.attributes, (right[0],) if right else ())


def _constant(text: _Text) -> Form:
    # {stage = 1 : i32} dense<0> : tensor<4xi32>   true   5 : i32
    body = text.body
    if body.lstrip().startswith("{"):
        body = _take_dictionary(body, text.attributes)
    value = body.strip()
    text.attributes["value"] = value
    kind = split_types(" " + value)[1]
    return Form((), {}, text.attributes, (kind or "i1",))


def _global(text: _Text) -> Form:
    # external constant @name("text\00") {addr_space = 3 : i32} : !llvm.array<0 x i8>
    _region_tail(text)
    body, types = split_types(text.body)
    body = _take_dictionary(body, text.attributes)
    words, _, rest = body.partition("@")
    for word in words.split():
        text.attributes["linkage" if word in (*_LINKAGES, "private") else word] = (
            word if word in (*_LINKAGES, "private") else ""
        )
    opening = rest.find("(")
    text.attributes["sym_name"] = f'"{rest[:opening].strip(chr(34))}"'
    value = rest[opening + 1 : closing(rest, opening)].strip()
    if value:
        text.attributes["value"] = value
    if types:
        text.attributes["global_type"] = types
    return Form((), {}, text.attributes)


_SPECIAL: dict[str, Callable[[_Text], Form]] = {
    "tt.func": _function, "llvm.func": _function, "func.func": _function, "scf.for": _for, "scf.while": _while,
    "cf.br": _branch, "cf.cond_br": _branch, "cf.switch": _branch, "llvm.br": _branch, "llvm.cond_br": _branch,
    "llvm.switch": _branch, "llvm.getelementptr": _getelementptr, "arith.constant": _constant,
    "llvm.mlir.global": _global,
}  # fmt: skip


def argument_types(header: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The types that a block's header gives its arguments: `^bb0(%a: i32, %b: f32):`."""
    written = parameters_of(header)
    return tuple(written[name][0] if name in written else "" for name in names)

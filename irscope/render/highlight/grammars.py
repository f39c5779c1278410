"""The words of each language that stages are written in: one table of patterns per language.

LLVM IR and PTX have grammars here because the lexers of Pygments know fixed lists of words, which the compilers of
today have outgrown: an attribute such as `captures(none)` becomes a row of errors, one per letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
    _TokenType,  # pyright: ignore[reportPrivateUsage]
)

from irscope.model.capture import StageKind

TokenType = _TokenType


@dataclass(frozen=True)
class Grammar:
    """The kinds of words of a language. Where several patterns match, the first one counts."""

    rules: tuple[tuple[TokenType, str], ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """All rules as one pattern; `match.lastindex - 1` is the index of the rule that matched."""
        return re.compile("|".join(f"({pattern})" for _, pattern in self.rules), re.MULTILINE)

    @cached_property
    def types(self) -> tuple[TokenType, ...]:
        """The kind of each rule's words."""
        return tuple(token for token, _ in self.rules)

    def tokens(self, text: str) -> Iterator[tuple[int, TokenType, str]]:
        """The words of a text, with their places; they rejoin to the text. Time is linear in its length."""
        end = 0
        for match in self.pattern.finditer(text):
            start = match.start()
            if start > end:
                yield from _between(text[end:start], end)
            yield start, self.types[(match.lastindex or 1) - 1], match[0]
            end = match.end()
        if end < len(text):
            yield from _between(text[end:], end)


def _between(gap: str, start: int) -> Iterator[tuple[int, TokenType, str]]:
    """What no rule matched: blanks, and characters that the language does not have."""
    for match in re.finditer(r"(\s+)|\S", gap):
        yield start + match.start(), Whitespace if match[1] else Error, match[0]


# Each pattern stops at the end of its line or consumes what it looked at, so that no text makes matching slow.
_STRING = r'(?<!\\)"(?:[^"\\\n]|\\.)*"'
_BLOCK_COMMENT = r"/\*(?:[^*]|\*(?!/))*(?:\*/)?"

_PLAIN = Grammar(((Text, r"[^\n]+"),))

MLIR = Grammar(
    (
        (Comment.Special, r"(?<![\w.$@%#!-])loc\((?:#loc\d*|unknown)\)|^#loc[\w.$-]*"),  # loc(#loc12)
        (Comment.Single, r"//[^\n]*"),  # // 2 preds: ^bb1, ^bb2
        (String, _STRING),
        (Name.Variable, r"%[\w$.-]+(?:[:#]\d+)?"),  # %acc_12   %c-1_i32   %result:3   %result#1
        (Name.Function, r"@[\w$.-]+|@(?=\")"),  # @matmul_kernel
        (Name.Label, r"\^[\w$.-]+"),  # ^bb0
        (Punctuation, r"\{-#|#-\}"),
        (Name.Constant, r"#[A-Za-z_][\w$.-]*|#\d+"),  # #blocked1   #ttg.blocked
        (Keyword.Type, r"![A-Za-z_][\w$.]*"),  # !ttg.memdesc
        (Keyword.Type, r"(?:[su]?i\d+|bf16|tf32|f\d+(?:[A-Z]\w*)?|index|none)(?![\w.$])"),  # i32   f16   f8E4M3FN
        (Keyword.Type, r"(?:tensor|vector|memref|tuple|complex)(?=<)"),
        (
            Number.Integer,
            r"(?:\d+|\?)(?:x(?:\d+|\?))*x(?=[A-Za-z!])(?!x[0-9A-Fa-f])",
        ),  # 128x64x (of tensor<128x64xf16>)
        (Name.Attribute, r"[A-Za-z_][\w$]*(?:\.[\w$-]+)*(?= = )"),  # sizePerThread = …   ttg.num-warps = …
        (Keyword, r"[A-Za-z_]\w*(?:\.[\w$]+)+"),  # tt.load
        (Keyword.Constant, r"(?:true|false|unit|unknown)(?![\w$])"),
        (
            Keyword.Declaration,
            r"(?:module|func|attributes|public|private|internal|external|distinct|callsite|fused|loc|at|iter_args|step|to|"
            r"else|do|default|case|partition\d+|num_warps|dense|array|return|call)(?![\w$])",
        ),
        (Name, r"[A-Za-z_][\w$]*"),
        (Operator, r"->|::"),
        (Number, r"0x[0-9A-Fa-f]+|-?\d+\.\d*(?:[eE][+-]?\d+)?|-?\d+(?:[eE][+-]?\d+)?"),
        (Punctuation, r"[{}()\[\]<>,:;]"),
        (Operator, r"[=*+?|&/!^-]"),
    )
)

LLVM = Grammar(
    (
        (Comment.Special, r"!dbg !\d+"),
        (Comment.Single, r";[^\n]*"),
        (Name.Label, r"^(?:[\w.$-]+|" + _STRING + r")(?=:)"),  # 47:
        (String, r"c?" + _STRING),
        (Name.Variable, r"%(?:[\w.$-]+|" + _STRING + ")"),  # %12
        (Name.Function, r"@(?:[\w.$-]+|" + _STRING + ")"),  # @llvm.fma.f32
        (Name.Constant, r"#\d+|\$[\w.$-]+"),  # #4 (attributes)
        (Name.Decorator, r"#?![A-Za-z_][\w.]*|#dbg_\w+|!\d+"),  # !DILocation   !14
        (Name.Attribute, r"[A-Za-z_]\w*(?=: )"),  # line: 16
        (
            Keyword.Type,
            r"(?:i\d+|void|half|bfloat|float|double|fp128|ptr|label|token|metadata|x86_\w+|ppc_fp128)(?![\w.])",
        ),
        (Keyword, r"(?<== )[a-z]\w*|(?<=^  )[a-z]\w*"),  # the instruction
        (Keyword.Constant, r"(?:true|false|null|none|undef|poison|zeroinitializer)(?![\w.])"),
        (Number, r"(?:f?0x[KLMHR]?|[su]0x)[0-9A-Fa-f]+|[+-]?\d+\.\d*(?:[eE][+-]?\d+)?|-?\d+"),  # 0x3FF0   f0x3F800000
        (Keyword.Declaration, r"[A-Za-z_][\w.]*"),  # every other word is a flag or a header's
        (Punctuation, r"\.\.\.|[{}()\[\]<>,:|]"),
        (Operator, r"[=!*^+-]"),
    )
)

PTX = Grammar(
    (
        (Comment.Special, r"^[ \t]*\.(?:loc|file)[ \t][^\n]*"),
        (Comment.Single, r"//[^\n]*"),
        (Comment.Multiline, _BLOCK_COMMENT),
        (String, _STRING),
        (Name.Label, r"^[^\S\n]*[\w$.]+(?=:(?!:))|\$L[\w$]+"),  # $L__BB0_1
        (Name.Decorator, r"@!?%?\w+"),  # @%p1
        (
            Name.Builtin,
            r"%(?:n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|clock\w*|lanemask_\w+|cluster\w*|is_\w+|pm\d+)(?:\.[xyz])?(?!\w)",
        ),
        (Name.Variable, r"%[\w$]+"),  # %r12
        (Keyword.Type, r"\.(?:[subf]\d+(?:x\d)?|pred|bf16(?:x2)?|tf32|e\dm\d\w*)(?![\w.])"),  # .b32
        (Keyword.Declaration, r"\.[A-Za-z_][\w]*"),  # .visible
        (Number, r"0[fF][0-9A-Fa-f]{8}|0[dD][0-9A-Fa-f]{16}|0x[0-9A-Fa-f]+U?|-?\d+\.\d+(?:[eE][+-]?\d+)?|-?\d+U?"),
        (Keyword, r"[a-z]\w*(?:(?:\.|::)\w+)+|(?:ret|exit|trap|call|bra|bar|membar|brkpt)(?![\w$.])"),  # ld.global.b32
        (Name, r"[A-Za-z_$][\w$]*"),
        (Punctuation, r"[{}()\[\],;:]"),
        (Operator, r"[=+*/<>|&!~?^.-]"),
    )
)

SASS = Grammar(
    (
        (Comment.Special, r"//##[^\n]*"),
        (Comment.Single, r"//[^\n]*"),
        (Comment.Hashbang, r"/\*[0-9a-f]{4,}\*/|[0-9a-f]{4,}(?=  (?:B[0-5-]{6}:|-  ))"),  # the offset: /*0a30*/
        (Comment.Multiline, r"/\*(?:[^*\n]|\*(?!/))*(?:\*/)?"),  # the encoding
        (Name.Decorator, r"B[0-5-]{6}:R[0-6-]:W[0-6-]:[Y-]:S\d\d"),  # the control fields
        (Name.Tag, r"G\d+(?::[PUQ]\d+)*(?=  )"),  # live registers: G013:P2:U04
        (String, _STRING),
        (Keyword.Pseudo, r"@!?U?P(?:\d+|T)(?!\w)"),  # @!P0
        (Name.Label, r"^[^\S\n]*[.$\w]+(?=:[^\S\n]*$)|`\([^()\n]*\)"),  # .L_x_0:   `(.L_x_0)
        (Name.Builtin, r"SR_[\w.]+|SRZ(?!\w)"),  # SR_TID.X
        (Name.Variable, r"(?:UR|R)(?:\d+|Z)(?:\.\w+)*|U?P(?:\d+|T)(?!\w)|S?B\d+(?!\w)"),  # R12.reuse   UR4   P0
        (Name.Constant, r"cx?(?=\[)|desc(?=\[)"),  # c[0x0][0x210]
        (Keyword, r"[A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*(?![\w(])"),  # LDG.E.128
        (Keyword.Declaration, r"\.[A-Za-z_][\w.]*"),  # .section
        (Number, r"[-+]?0x[0-9a-f]+|[-+]?(?:INF|QNAN|SNAN)(?!\w)|[-+]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"),
        (Name, r"[A-Za-z_$@][\w$.@]*"),
        (Punctuation, r"[\[\](){},;:#%]"),
        (Operator, r"[-+*|~!=&?/<>.`]"),
    )
)

AMDGCN = Grammar(
    (
        (Comment.Special, r"^[ \t]*\.(?:loc|file)[ \t][^\n]*"),
        (Comment.Single, r"(?:;|//)[^\n]*"),
        (Comment.Multiline, _BLOCK_COMMENT),
        (String, _STRING),
        (Name.Label, r"^[\w.$]+(?=:(?:\s|$))|\.L[\w.$]+"),  # .LBB1_2
        (
            Name.Variable,
            r"(?:v|s|a|ttmp)(?:\d+(?!\w)|\[[\w:+]*\])|(?:vcc|exec|flat_scratch|xnack_mask)(?:_lo|_hi)?(?!\w)|(?:m0|scc|vccz|execz|src_\w+)(?!\w)",
        ),  # v12   s[0:3]   a5   vcc_lo
        (Keyword, r"(?:v|s|ds|buffer|global|flat|scratch|image|tbuffer|cluster|tensor|exp)_[a-z]\w*"),  # v_add_f32_e32
        (Name.Attribute, r"[a-z_]\w*(?=:[\[\w-])|(?:off|offen|idxen|glc|slc|dlc|sc0|sc1|nt|lds|gds|clamp|null)(?!\w)"),
        (Keyword.Declaration, r"\.[A-Za-z_][\w.]*"),  # .amdhsa_next_free_vgpr
        (Number, r"0x[0-9A-Fa-f]+|-?\d+\.\d+(?:[eE][+-]?\d+)?|-?\d+"),
        (Name, r"[A-Za-z_$@][\w.$@]*"),  # vmcnt
        (Punctuation, r"---|\.\.\.|[{}()\[\],:]"),
        (Operator, r"[-+*/|&!~<>=^%?.#']"),
    )
)

GRAMMARS: dict[StageKind, Grammar] = {
    "mlir": MLIR,
    "llvm": LLVM,
    "ptx": PTX,
    "sass": SASS,
    "amdgcn": AMDGCN,
    "binary": _PLAIN,
}
"""The grammar of each kind of stage; a binary's text is plain."""

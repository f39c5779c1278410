"""The lexers: every character is kept, and every word of a real text is known."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Comment, Error, Keyword, Name, Number, String, Text, Token, Whitespace

from irscope.model.capture import StageKind, stage_named
from irscope.render.highlight import GRAMMARS, AmdgcnLexer, GrammarLexer, MlirLexer, SassLexer
from tests.work import MEASURES, Measure

DATA = Path(__file__).parents[1] / "data" / "locations"
STAGES = sorted(str(path.relative_to(DATA)) for path in DATA.glob("3.*/*"))
KINDS: list[StageKind] = ["mlir", "llvm", "ptx", "sass", "amdgcn", "binary"]


def kind_of(name: str) -> StageKind:
    return stage_named(name.rpartition(".")[2]).kind


def lexer_for(kind: StageKind) -> GrammarLexer:
    lexer: type[GrammarLexer] = type("KindLexer", (GrammarLexer,), {"grammar": GRAMMARS[kind]})
    return lexer()


def words(text: str, kind: StageKind) -> dict[str, object]:
    """The words of one line with their kinds, blanks left out."""
    return {word: token for token, word in lexer_for(kind).get_tokens(text) if token is not Whitespace}


@pytest.mark.parametrize("name", STAGES)
def test_tokens_of_a_real_text_rejoin_and_none_is_an_error(name: str) -> None:
    text = (DATA / name).read_text()
    tokens = list(lexer_for(kind_of(name)).get_tokens(text))
    assert "".join(word for _, word in tokens) == text
    assert {word for token, word in tokens if token is Error} == set()


@given(
    st.text(alphabet=st.sampled_from(' \t\n"\\/*;:.,#!%@^<>()[]{}$-=&0x19aLocP_é\x00'), max_size=60),
    st.sampled_from(KINDS),
)
def test_tokens_of_any_text_rejoin(text: str, kind: StageKind) -> None:
    assert "".join(word for _, word in lexer_for(kind).get_tokens(text)) == text
    tokens = list(lexer_for(kind).get_tokens_unprocessed(text))
    ends = [start + len(word) for start, _, word in tokens]
    assert [start for start, _, _ in tokens] == [0, *ends][: len(tokens)]


def test_no_line_is_stripped_or_added() -> None:
    for kind in KINDS:
        for text in ("", "\n", "\n\n  a\n\n", "a", "  a  "):
            assert "".join(word for _, word in lexer_for(kind).get_tokens(text)) == text


def test_words_of_mlir() -> None:
    line = '%a_0:2 = tt.load %b {ttg.width = 4 : i32, "s"} : tensor<128x64x!tt.ptr<f16>, #blocked1> loc(#loc3) // end\n'
    assert words(line, "mlir") | {} == {
        "%a_0:2": Name.Variable,
        "=": Token.Operator,
        "tt.load": Keyword,
        "%b": Name.Variable,
        "{": Token.Punctuation,
        "ttg.width": Name.Attribute,
        "4": Number,
        ":": Token.Punctuation,
        "i32": Keyword.Type,
        ",": Token.Punctuation,
        '"s"': String,
        "}": Token.Punctuation,
        "tensor": Keyword.Type,
        "<": Token.Punctuation,
        "128x64x": Number.Integer,
        "!tt.ptr": Keyword.Type,
        "f16": Keyword.Type,
        ">": Token.Punctuation,
        "#blocked1": Name.Constant,
        "loc(#loc3)": Comment.Special,
        "// end": Comment.Single,
    }
    assert words("^bb0(%arg0: f8E4M3FN):", "mlir")["^bb0"] is Name.Label
    assert words("tt.func public @matmul.kernel(%x)", "mlir")["@matmul.kernel"] is Name.Function
    assert words("tensor<2x0x4xi8>", "mlir")["2x0x4x"] is Number.Integer


def test_words_of_llvm_ir() -> None:
    found = words("  %34 = fmul <4 x float> %33, f0x3FB8AA3B, !dbg !20\n", "llvm")
    assert found["fmul"] is Keyword
    assert found["float"] is Keyword.Type
    assert found["f0x3FB8AA3B"] is Number
    assert found["!dbg !20"] is Comment.Special
    assert words('declare void @"a b"(ptr captures(none)) #2', "llvm")['@"a b"'] is Name.Function


def test_words_of_ptx() -> None:
    found = words("\t@%p1 ld.global.v4.b32 { %r1 }, [ %rd1 + 0 ], 0f3F800000; // c\n", "ptx")
    assert found["@%p1"] is Name.Decorator
    assert found["ld.global.v4.b32"] is Keyword
    assert found["%rd1"] is Name.Variable
    assert found["0f3F800000"] is Number
    assert words("\tmov.u32 \t%r1, %tid.x;", "ptx")["%tid.x"] is Name.Builtin
    assert words("$L__BB0_1:", "ptx")["$L__BB0_1"] is Name.Label
    assert words("\t.loc\t1 2 3 // k.py:2:3", "ptx") == {"\t.loc\t1 2 3 // k.py:2:3": Comment.Special}


@pytest.mark.parametrize(
    "line",
    [
        "        /*0140*/              @!P0 LDG.E.128 R4, desc[UR6][R8.64+0x8] ;      /* 0x0000000604068981 */",
        "        0140  B01----:R2:W-:Y:S04  G013:P2:U04  @!P0 LDG.E.128 R4, desc[UR6][R8.64+0x8]",
    ],
)
def test_words_of_sass(line: str) -> None:
    found = words(line, "sass")
    assert found["@!P0"] is Keyword.Pseudo
    assert found["LDG.E.128"] is Keyword
    assert found["R4"] is Name.Variable
    assert found["R8.64"] is Name.Variable
    assert found["UR6"] is Name.Variable
    assert next(iter(found.values())) is Comment.Hashbang
    if "G013" in line:
        assert found["B01----:R2:W-:Y:S04"] is Name.Decorator
        assert found["G013:P2:U04"] is Name.Tag


def test_more_words_of_sass() -> None:
    assert words("  /*0000*/  S2R R0, SR_TID.X ;", "sass")["SR_TID.X"] is Name.Builtin
    assert words("  /*0000*/  LDC R1, c[0x0][0x28] ;", "sass")["c"] is Name.Constant
    assert words("  /*0000*/  BRA `(.L_x_0) ;", "sass")["`(.L_x_0)"] is Name.Label
    assert words('\t//## File "k.py", line 3', "sass")['//## File "k.py", line 3'] is Comment.Special


def test_words_of_amdgcn() -> None:
    found = words("\tv_pk_fma_f32 v[2:3], s[8:9], a5, 2.0 op_sel_hi:[0,1,0] ; c\n", "amdgcn")
    assert found["v_pk_fma_f32"] is Keyword
    assert found["v[2:3]"] is found["s[8:9]"] is found["a5"] is Name.Variable
    assert found["op_sel_hi"] is Name.Attribute
    assert found["2.0"] is Number
    assert words("\ts_cbranch_execz .LBB1_2\n", "amdgcn")[".LBB1_2"] is Name.Label
    assert words("\ts_and_b64 vcc, exec, s[0:1]\n", "amdgcn")["vcc"] is Name.Variable
    assert words("\t.amdhsa_next_free_vgpr 11\n", "amdgcn")[".amdhsa_next_free_vgpr"] is Keyword.Declaration


def test_a_binary_is_plain() -> None:
    assert list(lexer_for("binary").get_tokens("a b\n")) == [(Text, "a b"), (Whitespace, "\n")]


def test_pygments_finds_the_lexers_by_their_names() -> None:
    known = {point.name: point.value for point in entry_points(group="pygments.lexers")}
    if "nvsass" not in known:
        pytest.skip("irscope is not installed here: its entry points are not known")
    from pygments.lexers import get_lexer_by_name

    assert isinstance(get_lexer_by_name("ttgir"), MlirLexer)
    assert isinstance(get_lexer_by_name("nvsass"), SassLexer)
    assert isinstance(get_lexer_by_name("amdgcn"), AmdgcnLexer)


HOSTILE = [
    '"',
    "/*",
    "//",
    "loc(",
    "1x",
    "a.",
    "%",
    "v[",
    "c[0x0][",
    "`(",
    "B------:",
    "0" * 50 + "x",
    "\\",
    " ",
    "a-",
    "@!",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("work", MEASURES)
def test_a_hostile_text_takes_linear_work(piece: str, kind: StageKind, work: Measure) -> None:
    assert work.is_linear(lambda times: list(lexer_for(kind).get_tokens(piece * times)), len(piece))


@pytest.mark.parametrize(
    "name", ["chains.cuda90.mlir", "chains.cuda90.llir", "product.cuda90.ptx", "chains.gfx942.amdgcn"]
)
@pytest.mark.parametrize("work", MEASURES)
def test_a_real_text_takes_linear_work(name: str, work: Measure) -> None:
    text = (DATA / "3.9.0" / name).read_text()
    text *= 1 + 4 * work.length // len(text)
    assert work.is_linear(lambda length: list(lexer_for(kind_of(name)).get_tokens(text[:length])))


@pytest.mark.triton
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_the_installed_triton_writes_no_word_that_is_not_known(target: str) -> None:
    import importlib.util
    import sys

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    folder = DATA / "kernels"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("locations", folder / "locations.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("helpers", None)
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "K": "i32", "SIZE": "constexpr"}
    backend, _, arch = target.partition(":")
    gpu = GPUTarget(backend, int(arch) if arch.isdigit() else arch, 32 if arch.isdigit() else 64)
    source = ASTSource(module.product, signature, {"SIZE": 64})
    compiled = triton.compile(source, target=gpu, options={"enable_fp_fusion": True})
    for stage in ("source", "ttir", "ttgir", "llir", "ptx", "amdgcn"):
        text = str(compiled.asm.get(stage, ""))
        tokens = list(lexer_for(stage_named(stage).kind).get_tokens(text))
        assert {word for token, word in tokens if token is Error} == set(), stage

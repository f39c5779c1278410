"""Every form that a location is written in, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.ir.locations.model import MAX_FRAMES, Frame
from irscope.ir.locations.stages import read_locations
from irscope.model.capture import StageKind

DATA = Path(__file__).parents[2] / "data" / "locations"


def chains(text: str, kind: StageKind = "mlir", *, llir: str | None = None, ptx: str | None = None) -> list[str]:
    """For each line its chain: file, line, column and [name] of each frame."""
    locations = read_locations(text, kind, llir=llir, ptx=ptx)
    return [" < ".join(map(frame_text, locations.chain_at(number + 1))) for number in range(len(locations.by_line))]


def frame_text(frame: Frame) -> str:
    return f"{frame}" + (f"[{frame.name}]" if frame.name else "")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("#a", "k.py:3:5"),
        ("#loc", "k.py:3:5"),
        ("unknown", ""),
        ('"k.py":7:2', "k.py:7:2"),
        ('"k.py":7:2 to :9', "k.py:7:2"),
        ('"k.py":7:2 to 8:9', "k.py:7:2"),
        ('"k.py":0:0', ""),
        ('"x"(#loc)', "k.py:3:5[x]"),
        ('"x"', ""),
        ('"x"("k.py":7:2)', "k.py:7:2[x]"),
        ('"x"("y"(#loc))', "k.py:3:5[x]"),
        ('callsite("h.py":1:2 at #loc)', "h.py:1:2 < k.py:3:5"),
        ('callsite("a"("h.py":1:2) at "b"(#loc))', "h.py:1:2[a] < k.py:3:5[b]"),
        ('callsite(callsite("g.py":4:4 at "h.py":1:2) at #loc)', "g.py:4:4 < h.py:1:2 < k.py:3:5"),
        ('callsite("g.py":4:4 at callsite("h.py":1:2 at #loc))', "g.py:4:4 < h.py:1:2 < k.py:3:5"),
        ("callsite(unknown at #loc)", "k.py:3:5"),
        ('callsite("h.py":1:2 at unknown)', "h.py:1:2"),
        ('fused[#loc, "h.py":1:2]', "k.py:3:5 < h.py:1:2"),
        ("fused[unknown, #loc]", "k.py:3:5"),
        ("fused<#di_subprogram>[#loc]", "k.py:3:5"),
        ('fused<#llvm.di_file<"other.py" in "/">>["k.py":7:2]', "k.py:7:2"),
        ('fused<"CSE">[fused[#loc], callsite("h.py":1:2 at #loc)]', "k.py:3:5 < h.py:1:2"),
        (r'"a\"b(\\.py":7:2', 'a"b(\\.py:7:2'),
        (r'"\C3\A4.py":7:2', "ä.py:7:2"),
        ("#missing", ""),
        ("", ""),
    ],
)
def test_mlir_location(location: str, expected: str) -> None:
    text = f'#loc = loc("k.py":3:5)\n%0 = arith.constant 1 : i32 loc({location})\n'.replace("#a", "#loc1")
    assert chains(f"{text}#loc1 = loc(#loc)\n") == ["", expected, ""]


def test_aliases_are_followed_whatever_their_order() -> None:
    text = (
        "tt.return loc(#loc3)\n"
        "#loc3 = loc(callsite(#loc1 at #loc2))\n"
        '#loc2 = loc("y"(#loc1))\n'
        '#loc1 = loc("k.py":1:1)\n'
    )
    assert chains(text)[0] == "k.py:1:1 < k.py:1:1[y]"


def test_aliases_that_name_each_other_end() -> None:
    text = 'tt.return loc(#loc1)\n#loc1 = loc(callsite(#loc2 at #loc3))\n#loc2 = loc(#loc1)\n#loc3 = loc("k.py":1:1)\n'
    assert chains(text)[0] == "k.py:1:1"


def test_an_alias_of_an_alias_that_is_also_named_directly() -> None:
    text = (
        "tt.return loc(callsite(#loc2 at #loc1))\n"
        '#loc1 = loc("k.py":1:1)\n'
        "#loc2 = loc(callsite(#loc3 at #loc1))\n"
        '#loc3 = loc("h.py":2:2)\n'
    )
    assert chains(text)[0] == "h.py:2:2 < k.py:1:1 < k.py:1:1"


def test_nesting_has_no_end_but_a_chain_has() -> None:
    deep = 'callsite("h.py":1:1 at ' * 5000 + '"k.py":2:2' + ")" * 5000
    assert chains(f"tt.return loc({deep})\n")[0].count("<") == MAX_FRAMES - 1


def test_an_operation_is_all_its_own_lines() -> None:
    text = """\
module {
  tt.func @f(%x: i32 loc("x"("k.py":1:1))) {
    %0 = "tt.reduce"(%x) ({
    ^bb0(%a: f32 loc("a"("k.py":5:5)), %b: f32 loc("k.py":6:6)):
      tt.reduce.return %a : f32 loc("k.py":4:4)
    }, {
      tt.reduce.return %a : f32 loc(unknown)
    }) : (i32) -> i32 loc("k.py":3:3)
    llvm.switch %0 : i32, ^bb3 [
      0: ^bb1,
      -1: ^bb2
    ] loc("k.py":7:7)
  ^bb1:  // pred: ^bb0
    ttg.warp_specialize(%0)
    default {
      ttg.warp_yield loc("k.py":9:9)
    }
    partition0(%c: i32) num_warps(4) {
      ttg.warp_return loc("k.py":10:10)
    } : (i32) -> () loc("k.py":8:8)
    tt.return loc("k.py":2:2)
  } loc("k.py":1:1)
} loc(#loc)
#loc = loc("k.py":1:2)
"""
    assert chains(text) == [
        "k.py:1:2",
        "k.py:1:1",
        "k.py:3:3",
        "k.py:5:5[a]",
        "k.py:4:4",
        "k.py:3:3",
        "",
        "k.py:3:3",
        *["k.py:7:7"] * 4,
        "",
        "k.py:8:8",
        "k.py:8:8",
        "k.py:9:9",
        "k.py:8:8",
        "k.py:8:8",
        "k.py:10:10",
        "k.py:8:8",
        "k.py:2:2",
        "k.py:1:1",
        "k.py:1:2",
        "",
    ]


def test_an_operation_without_a_location_takes_nobody_elses() -> None:
    text = 'module {\n  %0 = a.b : i32\n  %1 = a.c : i32 loc("k.py":1:1)\n  %2 = a.d : i32\n}\n'
    assert chains(text) == ["", "", "k.py:1:1", "", ""]


def test_what_only_looks_like_a_location_is_none() -> None:
    text = '%0 = tt.call @loc(%a)\n%1 = a.b "loc(x)"\n%2 = a.b {x = "} loc("} loc("k.py":1:1)\n'
    assert chains(text) == ["", "", "k.py:1:1"]


LLVM = """\
define void @k(i32 %0) !dbg !6 {
  %2 = add i32 %0, 1, !dbg !14
  %3 = load i32, ptr null, align 4, !dbg !15, !tbaa !20
  switch i32 %3, label %4 [
    i32 0, label %4
  ], !dbg !16
  ret void
}
!1 = !DIFile(filename: "k.py", directory: "/here")
!3 = !DIFile(filename: "/abs/h.py", directory: "/here")
!6 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 3)
!7 = distinct !DISubprogram(name: "helper", scope: !3, file: !3, line: 30)
!8 = distinct !DILexicalBlock(scope: !7, line: 31)
!14 = !DILocation(line: 5, column: 3, scope: !6)
!15 = distinct !DILocation(line: 32, scope: !8, inlinedAt: !14)
!16 = !DILocation(line: 0, scope: !8, inlinedAt: !14)
"""


def test_llvm_locations_go_through_scopes_and_call_sites() -> None:
    assert chains(LLVM, "llvm")[:8] == [
        "/here/k.py:3",
        "/here/k.py:5:3",
        "/abs/h.py:32 < /here/k.py:5:3",
        *["/here/k.py:5:3"] * 3,
        "",
        "",
    ]
    chain = read_locations(LLVM, "llvm").chain_at(3)
    assert [frame.function for frame in chain] == ["helper", "k"]  # here the scope is the helper's own: it is true


PTX = """\
.visible .entry k(
	.param .u64 a
)
{
	.reg .b32 	%r<3>;
	mov.u32 	%r0, 0;
	.loc	1 5 3                          // k.py:5:3
	{ // callseq 0, 0
	mov.u32 	%r1, 0;
$L__tmp0:
	.loc	2 9 9, function_name $L__info_string0, inlined_at 1 5 3 // h.py:9:9
	@%p1 add.s32 	%r1, %r1, 1;
	.loc	1 0 0
	add.s32 	%r1, %r1, 2;
	.loc	1 6 3
	// begin inline asm
	.loc	1 6 3
	mov.u32 %r1, 0;
	.loc	1 7 3
	ld.global.b32 %r1, [%rd1];

	// end inline asm
	ret;
}
.func g()
{
	ret;
	.loc	2 9 9, function_name $L__info_string1, inlined_at 1 5 3
	ret;
}
	.file	1 "k.py"
	.file	2 "/abs" "h.py"
	.section	.debug_str
	{
$L__info_string0:
.b8 104                                 // string offset=0 ; h
.b8 0
$L__info_string1:
.b8 103,0
	}
"""


def test_ptx_locations_hold_until_the_next_one_of_the_function() -> None:
    found = [one for one in enumerate(chains(PTX, "ptx"), 1) if one[1]]
    assert found == [
        (9, "k.py:5:3"),
        (12, "/abs/h.py:9:9 < k.py:5:3"),
        (18, "k.py:6:3"),
        (20, "k.py:6:3"),  # not 7: LLVM counts on within inline assembly
        (23, "k.py:6:3"),
        (29, "/abs/h.py:9:9 < k.py:5:3"),
    ]
    assert [frame.function for frame in read_locations(PTX, "ptx").chain_at(12)] == ["h", ""]
    assert [frame.function for frame in read_locations(PTX, "ptx").chain_at(29)] == ["", ""]  # g is not inlined in g


def test_ptx_before_triton_3_8_has_its_call_sites_in_comments() -> None:
    assert "inlined_at" not in (DATA / "3.6.0/chains.cuda90.ptx").read_text()
    text = ".entry k()\n{\n\t.loc\t1 9 9 // h.py:9:9 @[ k.py:5:3 ]\n\tret;\n}\n"
    text += '\t.file\t1 "/a/h.py"\n\t.file\t2 "/b/k.py"\n'
    assert chains(text, "ptx")[3] == "/a/h.py:9:9 < /b/k.py:5:3"


SASS = """\
	.section	.text.k,"ax",@progbits
.text.k:
        /*0000*/                   MOV R1, R2 ;
	//## File "h.py", line 9 inlined at "k.py", line 5
	//## File "k.py", line 5
        /*0010*/                   IADD3 R1, R2, R3 ;          /* 0x00000a00ff017b82 */
                                                               /* 0x000fe20000000800 */
.L_x_0:
	//## File "h.py", line 9 inlined at "g.py", line 3 inlined at "k.py", line 6
        /*0020*/                   LDG.E R1, [R2] ;
	//## File "", line 0
        /*0030*/                   EXIT ;
	//## File "k.py", line 7
        0040  B------:R-:W0:-:S07  G002:P0:U00  @!P0 LDG.E R0, [R2]
        .type           $k$helper,@function
$k$helper:
        /*0050*/                   RET ;
"""


def test_sass_markers_hold_until_the_next_one_of_the_function() -> None:
    found = [one for one in enumerate(chains(SASS, "sass"), 1) if one[1]]
    assert found == [
        (6, "h.py:9 < k.py:5"),
        (7, "h.py:9 < k.py:5"),
        (10, "h.py:9 < g.py:3 < k.py:6"),
        (14, "k.py:7"),
    ]


def test_lines_that_llvm_counted_on_are_told_by_the_ptx() -> None:
    assert chains(SASS, "sass", ptx=PTX)[13] == "k.py:6"
    true_too = PTX.replace("\tret;\n}\n.func", "\t.loc\t1 7 9\n\tadd.s32 %r1, %r1, 1;\n}\n.func")
    assert chains(SASS, "sass", ptx=true_too)[13] == "k.py:6"  # line 7 loads nothing itself
    true_load = true_too.replace("\t.loc\t1 7 9\n", "\t.loc\t1 7 9\n\tld.global.b32 %r1, [%rd1];\n")
    assert chains(SASS, "sass", ptx=true_load)[13] == "k.py:7"


def test_sass_without_call_sites_gets_them_where_there_is_one_chain_alone() -> None:
    marked = '\t//## File "/abs/h.py", line 32\n        /*0010*/                   MOV R1, R2 ;\n'
    assert chains(marked, "sass")[1] == "/abs/h.py:32"
    assert chains(marked, "sass", llir=LLVM)[1] == "/abs/h.py:32 < /here/k.py:5"
    two = (
        LLVM
        + "!17 = !DILocation(line: 32, scope: !8, inlinedAt: !18)\n!18 = !DILocation(line: 6, column: 1, scope: !6)\n"
    )
    assert chains(marked, "sass", llir=two)[1] == "/abs/h.py:32"


AMDGCN = """\
k:                                      ; @k
.Lfunc_begin0:
	.file	1 "/here" "k.py"
	.file	2 "/abs/h.py"
	.loc	1 3 0 prologue_end is_stmt 1   ; k.py:3:0
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	.loc	2 32 1                         ; h.py:32:1 @[ g.py:2:2 @[ k.py:5:3 ] ]
	v_mov_b32_e32 v0, 1
.LBB0_1:
	.loc	2 0 1                          ; h.py:0:1
	s_nop 0
	.loc	2 32 0
	s_endpgm
.Lfunc_end0:
	.section	.rodata
	.p2align	6
	s_nop 0
"""


def test_amdgcn_call_sites_come_from_the_comment_or_the_llvm_ir() -> None:
    expected = {6: "/here/k.py:3", 8: "/abs/h.py:32:1 < g.py:2:2 < /here/k.py:5:3", 13: "/abs/h.py:32"}
    assert {number: one for number, one in enumerate(chains(AMDGCN, "amdgcn"), 1) if one} == expected
    settled = expected | {13: "/abs/h.py:32 < /here/k.py:5:3"}
    assert {number: one for number, one in enumerate(chains(AMDGCN, "amdgcn", llir=LLVM), 1) if one} == settled


def test_a_file_name_that_two_folders_have_is_settled_by_the_llvm_ir() -> None:
    text = AMDGCN.replace('\t.file\t2 "/abs/h.py"', '\t.file\t2 "/abs/h.py"\n\t.file\t3 "/other/k.py"').replace(
        "32 1                         ; h.py:32:1 @[ g.py:2:2 @[ k.py:5:3 ] ]", "32 0 ; h.py:32:0 @[ k.py:5:3 ]"
    )
    assert chains(text, "amdgcn")[8] == "/abs/h.py:32 < k.py:5:3"
    assert chains(text, "amdgcn", llir=LLVM)[8] == "/abs/h.py:32 < /here/k.py:5:3"

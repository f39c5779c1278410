"""What the virtual GPU assumed of a script's launches, from the read to the capture, its file and the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="recording compiles with Triton, which is not installed")
from irscope.model.capture import Capture
from irscope.model.launch_record import Assumption, Decision
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.store.file import from_bytes, to_bytes
from irscope.store.shelf import StoredCaptures

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(find_spec("torch") is None, reason="the script imports torch, which is not installed"),
]

SCRIPT = """import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, size_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < tl.load(size_ptr))
    tl.store(y_ptr + offsets, x * 2, mask=offsets < n)


x = torch.randn(128, device="cuda")
y = torch.zeros(128, device="cuda")
size = torch.tensor([3, 48], device="cuda")
known = int(size.max())
scale[(1,)](x, y, size, known, BLOCK=16)
assert size.tolist() == [3, 48]
n = int(x.max().item())
scale[(triton.cdiv(n, 64) + 1,)](x, y, size, n, BLOCK=32)
assert torch.allclose(y, x * 2), "wrong"
assert (y - x).abs().max() > 1, "the same"
if n == 0:
    raise ValueError(n)
m = int(y.sum())
scale[(1,)](x, y, size, m + 1, BLOCK=64)
big = torch.empty(m + 24, device="cuda")
scale[lambda meta: (big.numel() // 8,)](x, big, size, 5, BLOCK=128)
scale[(1,)](x, y, size, 5, BLOCK=triton.next_power_of_2(y.argmax().item() + 200))
scale[(1,)](x, y, size, n=y.argmin().item(), BLOCK=512)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("assumed") / "item3.py"
    path.write_text(SCRIPT)
    return path


def recorded(script: Path, **assume: int) -> tuple[Capture, ...]:
    request = request_for(script, targets=("cuda:90",), snapshots="none", virtual=True, assume=assume, jobs=1)
    return tuple(record_request(replace(request, disassemble=False, layouts=False)).captures)


@pytest.fixture(scope="module")
def captures(script: Path) -> tuple[Capture, ...]:
    return recorded(script)


@pytest.fixture(scope="module")
def assumed(script: Path) -> tuple[Capture, ...]:
    """With one value by its name, one by its line, and one that nothing has."""
    return recorded(script, **{"n": 3, "item3.py:25": 31, "nothing": 3})


def named(capture: Capture) -> dict[str, Assumption]:
    return {item.name: item for item in capture.launch.assumptions}


def kinds(assumption: Assumption) -> list[tuple[str, str]]:
    return [(made.kind, made.what) for made in assumption.decided if not made.place]


def test_every_launch_is_recorded(captures: tuple[Capture, ...]) -> None:
    assert [capture.launch.grid for capture in captures] == [
        (1, 1, 1),
        (1, 1, 1),
        (1, 1, 1),
        (3, 1, 1),
        *[(1, 1, 1)] * 2,
    ]


def test_what_is_known_is_not_assumed(captures: tuple[Capture, ...]) -> None:
    assert captures[0].launch.assumptions == ()
    assert dict(captures[0].launch.attributes)["n"] == "tt.divisibility=16"


def test_an_argument_and_its_attribute(captures: tuple[Capture, ...]) -> None:
    n = named(captures[1])["n"]
    assert (n.value, n.place, n.expression, n.given) == ("0", "item3.py:19", "n = int(x.max().item())", False)
    assert kinds(n) == [("attribute", "n: tt.divisibility=16"), ("argument", "n"), ("grid", "grid[0]=1")]
    assert n.text.startswith(
        "n: assumed 0, from item3.py:19, which decided n: tt.divisibility=16, grid[0]=1; --assume n="
    )
    assert any(note.startswith(n.text) for note in captures[1].notes)


def test_a_constant_a_grid_a_shape_and_a_constexpr(captures: tuple[Capture, ...]) -> None:
    assert kinds(named(captures[2])["m"]) == [("constexpr", "n=1"), ("argument", "n")]
    m = named(captures[3])["m"]
    assert ("grid", "grid[0]=3") in kinds(m)
    assert Decision("shape", 'big = torch.empty(m + 24, device="cuda")', "item3.py:27") in m.decided
    assert kinds(named(captures[4])["BLOCK"]) == [("constexpr", "BLOCK")]


def test_checks_are_taken_to_pass_and_said_once(captures: tuple[Capture, ...]) -> None:
    (note,) = [note for note in captures[2].notes if note.startswith("Assumed to pass")]
    assert "item3.py:21 (assert torch.allclose(y, x * 2)" in note
    assert "item3.py:22" in note
    assert "item3.py:23 (if n == 0)" in note
    assert not any(note.startswith("Assumed to pass") for note in captures[1].notes)


def test_assume_compiles_what_the_value_itself_would(
    assumed: tuple[Capture, ...], script: Path, tmp_path: Path
) -> None:
    # The oracle: the same script with the numbers written where the reads were.
    literal = tmp_path / script.name
    numbers = {"int(x.max().item())": "3", "int(y.sum())": "31", "y.argmin().item()": "3"}
    text = SCRIPT
    for read, number in numbers.items():
        text = text.replace(read, number)
    literal.write_text(text)
    written = recorded(literal)
    assert len(assumed) == len(written)
    for capture, expected in zip(assumed, written, strict=True):
        texts = [
            {stage.stage: without_folders(stage.data, tmp_path, script.parent) for stage in one.artifacts}
            for one in (capture, expected)
        ]
        assert texts[0] == texts[1]
        assert capture.launch.attributes == expected.launch.attributes
        assert capture.launch.constants == expected.launch.constants
        assert capture.launch.grid == expected.launch.grid
        assert not {"n", "m"} & named(expected).keys()
    assert "n" not in dict(assumed[1].launch.attributes)
    assert dict(assumed[2].launch.attributes)["n"] == "tt.divisibility=16"


def without_folders(data: str | bytes, *folders: Path) -> str:
    text = data if isinstance(data, str) else ""
    for folder in folders:
        text = text.replace(str(folder), "")
    return "\n".join(line for line in text.splitlines() if ".b8" not in line and "//" not in line)


def test_what_the_user_set_is_told(assumed: tuple[Capture, ...]) -> None:
    n, m = named(assumed[1])["n"], named(assumed[2])["m"]
    assert (n.given, n.value, m.given, m.value) == (True, "3", True, "31")
    assert n.text.startswith("n: 3, set by --assume, read at item3.py:19")
    (note,) = [note for note in assumed[0].notes if "--assume nothing" in note]
    assert "n (item3.py:19)" in note


def test_a_capture_file_keeps_assumptions(captures: tuple[Capture, ...]) -> None:
    for capture in captures:
        again = from_bytes(to_bytes(capture))
        assert again == capture
        assert again.launch.assumptions == capture.launch.assumptions


def test_a_capture_without_the_field_is_read(captures: tuple[Capture, ...]) -> None:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(to_bytes(captures[1]))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["capture.json"])
    del manifest["launch"]["assumptions"]
    members["capture.json"] = json.dumps(manifest).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert from_bytes(buffer.getvalue()).launch.assumptions == ()


def test_assumptions_are_no_part_of_the_identity(captures: tuple[Capture, ...]) -> None:
    bare = replace(captures[1], launch=replace(captures[1].launch, assumptions=()))
    assert bare.id == captures[1].id


def test_the_command_line_shows_them(captures: tuple[Capture, ...]) -> None:
    from irscope.cli.show import summary
    from irscope.render.capture import capture_json

    text = " ".join(summary(StoredCaptures.of(captures), False).split())
    assert "n=0" in text
    assert "n: assumed 0, from item3.py:19" in text
    (n,) = [item for item in capture_json(captures[1])["assumptions"] if item["name"] == "n"]
    assert {"kind": "argument", "what": "n", "place": ""} in n["decided"]

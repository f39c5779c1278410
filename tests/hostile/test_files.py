"""Files made to exhaust, to hang or to lead elsewhere are refused with a message that names what is wrong."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from irscope.errors import CaptureFormatError
from irscope.ir.mlir.attributes import read_aliases, resolve_aliases
from irscope.ir.mlir.tokens import LONGEST
from irscope.store.file import from_bytes, to_bytes
from irscope.store.schema import MAX_MANIFEST_BYTES
from tests.hostile.viewing import run_quietly
from tests.report_browser.captures import softmax


def changed(path: tuple[Any, ...], value: Any) -> bytes:
    """A real capture whose manifest has another value at a path."""
    with zipfile.ZipFile(io.BytesIO(to_bytes(softmax()))) as archive:
        members = {row.filename: archive.read(row) for row in archive.infolist()}
    manifest = json.loads(members["capture.json"])
    at: Any = manifest
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    members["capture.json"] = json.dumps(manifest).encode()
    return zipped(members)


def zipped(members: dict[str, bytes], twice: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        if twice:
            with pytest.warns(UserWarning, match="Duplicate name"):
                archive.writestr(twice, b"again")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("launch", "kernel", "line"), "5", "launch.kernel.line"),
        (("launch", "signature"), [["a"]], "launch.signature"),
        (("launch", "grid"), [1, 2], "launch.grid"),
        (("launch", "options"), [["num_warps", "four"]], "num_warps"),
        (("launch", "options"), [["num_warps", -4]], "num_warps"),
        (("metadata",), [], "metadata"),
        (("metadata", "shared"), 1 << 40, "shared"),
        (("resources", "registers"), "many", "resources.registers"),
        (("resources", "registers"), -1, "resources.registers"),
        (("warp_size",), 0, "warp_size"),
        (("target",), "nonsense", "target"),
        (("plan",), "((", "plan"),
        (("status",), "green", "status"),
        (("artifacts", 0, "stage"), "nope", "nope"),
        (("artifacts", 0, "stage"), "../../x", "../../x"),
        (("artifacts", 0, "member"), "stages/none", "stages/none"),
        (("artifacts", 1, "stage"), "source", "source"),
        (("artifacts", 0, "binary"), True, "source"),
        (("snapshots", 0, "index"), -1, "index"),
        (("snapshots", 0, "outcome"), "won", "outcome"),
        (("snapshots", 0, "group"), "gcc", "group"),
        (("layouts", 0, "shape"), ["x"], "shape"),
        (("layouts", 0, "operations"), [{"lines": "all"}], "lines"),
        (("operations",), [{"stage": "ptx", "runs": [[5, 3]]}], "'ptx'"),
        (("operations",), [{"stage": "ptx", "runs": [[0, 1 << 52]]}], "'ptx'"),
        (("operations",), [{"stage": "ptx", "runs": [[1 << 30, 3]]}], "'ptx'"),
        (("operations",), [{"stage": "ptx", "runs": [[5, -3]]}], "operations.runs"),
        (("operations",), [{"stage": "ptx", "runs": [[5, 3, 1]]}], "operations[0].runs"),
        (("operations",), [{"stage": "nope", "runs": []}], "nope"),
        (("operations",), [{"stage": "ptx"}, {"stage": "ptx"}], "'ptx' occurs twice"),
        (("log",), {"passes": [{"stage": "nope", "text": "stages/ttgir"}]}, "nope"),
        (("log",), {"passes": [{"stage": "ttgir", "text": "stages/ttgir", "index": 9999}]}, "pass 9999 of 'ttgir'"),
        (("log",), {"passes": [{"stage": "ttgir", "text": "stages/nowhere"}]}, "'stages/nowhere'"),
        (("log",), {"passes": [{"stage": "ttgir", "text": "stages/ttgir"}] * 2}, "log of"),
        (("log",), {"passes": [{"stage": "ttgir", "text": "", "lines_left_out": -1}]}, "lines_left_out"),
        (("log",), {"differing": ["nope"]}, "nope"),
        (("profile",), {"page": "profile.csv"}, "'profile.csv', which it does not have"),
        (("profile",), {"page": 3}, "profile.page"),
        (("notes",), [1], "notes"),
        (("schema",), 99, "schema version 99"),
    ],
)
def test_a_value_of_another_kind_is_named(path: tuple[Any, ...], value: Any, named: str) -> None:
    with pytest.raises(CaptureFormatError, match=re.escape(named)):
        from_bytes(changed(path, value))


def test_an_operation_that_the_ttgir_does_not_have_is_refused() -> None:
    capture = softmax()
    lines, operations = capture.text("ptx").count("\n") + 1, capture.text("ttgir").count("\n") + 1
    assert from_bytes(changed(("operations",), [{"stage": "ptx", "runs": [[operations, lines]]}])).operations
    with pytest.raises(CaptureFormatError, match="'ptx'"):
        from_bytes(changed(("operations",), [{"stage": "ptx", "runs": [[operations + 1, lines]]}]))


def test_what_unpacks_to_far_more_than_it_is_is_not_unpacked() -> None:
    bomb = zipped({"capture.json": b" " * (MAX_MANIFEST_BYTES + 1)})
    with pytest.raises(CaptureFormatError, match=r"capture\.json has .* bytes"):
        from_bytes(bomb)
    bomb = zipped({"capture.json": b"{}", "stages/source": b"\n" * (80 << 20)})
    with pytest.raises(CaptureFormatError, match="times a file's own size"):
        from_bytes(bomb)


def test_a_member_that_occurs_twice_is_refused() -> None:
    with pytest.raises(CaptureFormatError, match=r"'capture\.json' occurs twice"):
        from_bytes(zipped({"capture.json": b"{}"}, twice="capture.json"))


def test_deep_json_is_refused() -> None:
    with pytest.raises(CaptureFormatError):
        from_bytes(zipped({"capture.json": b"[" * 200_000}))


def test_aliases_that_double_stay_short() -> None:
    lines = ["#a0 = #ttg.blocked<{order = [0]}>", *(f"#a{n} = #x.y<#a{n - 1}, #a{n - 1}>" for n in range(1, 60))]
    aliases = read_aliases("\n".join(lines))
    assert max(map(len, aliases.values())) <= LONGEST
    assert len(resolve_aliases("tensor<8xf32, #a59>", aliases)) <= LONGEST


def test_import_reads_regular_files_of_the_folder_alone(tmp_path: Path) -> None:
    folder, secret = tmp_path / "cache", tmp_path / "secret"
    (folder / "variant").mkdir(parents=True)
    secret.write_text("PASSWORD=1 module {}")
    (folder / "variant" / "k.ttir").symlink_to(secret)
    (folder / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(folder / "variant" / "f.ttgir")
    code, out, told = run_quietly(("import", str(folder)))
    assert code == 1
    assert "a link that leads out of" in told
    assert "PASSWORD" not in out + told
    os.mkfifo(tmp_path / "fifo")
    code, _, told = run_quietly(("import", str(tmp_path / "fifo")))
    assert code == 1
    assert "is not a regular file" in told


@pytest.mark.parametrize("command", ["show", "passes"])
def test_text_is_not_written_into_a_page(tmp_path: Path, command: str) -> None:
    file = tmp_path / "x.irscope"
    file.write_bytes(to_bytes(softmax()))
    page = tmp_path / "x.html"
    code, _, told = run_quietly((command, str(file), "-o", str(page)))
    assert code == 2
    assert ".html means a page" in told
    assert not page.exists()

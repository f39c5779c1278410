"""The id of a kernel that TorchInductor generated, which lies in another folder in each process."""

from dataclasses import replace

from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.model.generated import folder_of_generated

NAME = "cln4vrfuae3mpo4ob4g42q6fcclqvmvrztuqwzigfapmx6wvr5wg.py"
OTHER = f"cln{'a' * 49}.py"


def _capture(path: str) -> Capture:
    text = f'#loc = loc("{path}":3:0)\nmodule {{}} loc(#loc)\n'
    return Capture(Launch(Kernel("k", path)), Target.parse("cuda:90"), artifacts=(Artifact("source", text),))


def test_the_folder_of_a_generated_file_is_no_part_of_the_id() -> None:
    here, there = (_capture(f"/tmp/{folder}/ln/{NAME}") for folder in ("one", "two/tmpx"))
    assert here.id == there.id
    assert _capture(f"/tmp/one/ln/{OTHER}").id != here.id
    assert replace(here, launch=replace(here.launch, options=(("num_warps", 8),))).id != here.id


def test_the_folder_of_any_other_file_is() -> None:
    assert _capture("/tmp/one/ln/k.py").id != _capture("/tmp/two/ln/k.py").id
    assert folder_of_generated(f"/tmp/one/ln/{NAME}") == "/tmp/one/"
    for path in (f"/tmp/one/xx/{NAME}", NAME, "", "/tmp/one/ln/clnshort.py", f"/tmp/one/ln/{NAME}.ttgir"):
        assert folder_of_generated(path) == ""

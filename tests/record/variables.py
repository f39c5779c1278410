"""Set each environment variable that Triton knows, one at a time, and compare ids with artifacts.

The names are those that the installed Triton's cache key and `triton.knobs` read, folders and tools left out. Prints a
row a variable and value, and ends with 1 where an artifact differs under an equal id. An id that differs over equal
artifacts is counted only: the variable may decide another kernel's code.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = Path(__file__).parent / "kernels" / "no_torch.py"
PRODUCT = {"kernel": "tile_product", "signature": "*fp16:16, *fp16:16, *fp32:16, i32:16", "constexprs": {"BLOCK": 64}}
TARGETS = ("cuda:90", "hip:gfx942")
# What is looked for, kept or printed there, how a script is run, what needs another machine's files, and a log so long
# that the compile does not end.
LEFT_OUT = re.compile(
    r"_DIR$|_PATHS?$|_HOME$|CACHE|REDIS|PROTON|CUPTI|ROC|INTERPRET|OVERRIDE_ARCH|ENABLE_LLVM_DEBUG|^CC$|SWAP_MIR$|HSA_"
)

NAMES = """
import os, re
from triton import knobs
from triton._C import libtriton
found = set()
for group in vars(knobs).values():
    if isinstance(group, knobs.base_knobs):
        found |= {knob.key for knob in group.knob_descriptors.values()}
text = open(libtriton.__file__, "rb").read()
prefix = rb"(?:TRITON|LLVM|MLIR|AMDGCN|NVPTX|DISABLE|ENABLE|USE|ALLOW)"
for name in set(re.findall(prefix + rb"_[A-Z0-9a-z_]{3,48}", text)):
    os.environ[name.decode()] = "1"
print(*sorted(found | set(libtriton.get_cache_invalidating_env_vars())), flush=True)
os._exit(0)
"""


def artifacts(capture):
    return {item.stage: item.data for item in capture.artifacts} | {"failed": capture.status}


def main():
    import irscope

    names = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=True).stdout.split()
    wrong = kept = apart = 0
    for target in TARGETS:
        plain = irscope.record(KERNELS, target=target, snapshots="none", **PRODUCT)
        for name in names:
            if LEFT_OUT.search(name):
                continue
            for value in ("1", "0") if "USE_" in name or "FUSION" in name else ("1",):
                os.environ[name] = value
                try:
                    one = irscope.record(KERNELS, target=target, snapshots="none", **PRODUCT)
                except irscope.errors.IrscopeError as error:
                    print(f"{target} {name}={value}: {str(error).splitlines()[0][:80]}", flush=True)
                    continue
                finally:
                    del os.environ[name]
                same_id, same_code = one.id == plain.id, artifacts(one) == artifacts(plain)
                wrong += same_id and not same_code
                kept += same_id and same_code
                apart += not same_id
                verdict = "WRONG" if same_id and not same_code else ""
                print(f"{target} {name}={value}: id {same_id}, code {same_code} {verdict}", flush=True)
    print(f"{kept + apart + wrong} cases: {kept} equal, {apart} told apart, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IRSCOPE_HOME"] = folder
        sys.exit(bool(main()))

"""A sample of torch's table of operators, forward and backward on the virtual GPU; `autograd_ops.py` runs all of it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "autograd_ops.py"
# One of each kind: whose backward is written in Python, indexes, reads values, has no shape function, is sparse, fails
# halfway; and what training uses most.
SAMPLE = """
clamp clamp_min clamp_max where prod cumprod pow sinc nextafter masked_fill masked.softmax logcumsumexp
linalg.det linalg.vander nn.functional.normalize nn.functional.ctc_loss nn.functional.hinge_embedding_loss
nn.functional.triplet_margin_loss nn.functional.multi_margin_loss nn.functional.fractional_max_pool3d
nn.functional.gaussian_nll_loss nn.functional.unfold index_select index_reduce index_fill repeat_interleave as_strided
unfold stft istft cov corrcoef combinations narrow to_sparse sparse.sampled_addmm masked_select nonzero
cat tile cummax max_pool2d_with_indices_backward nn.functional.cross_entropy nn.functional.layer_norm
nn.functional.softmax nn.functional.gelu nn.functional.embedding matmul addmm mean std var_mean sort topk gather scatter
"""


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.skipif(find_spec("torch") is None, reason="it runs torch's operators, and torch is not installed")
def test_operators_give_the_shapes_types_and_strides_of_the_cpu() -> None:
    names = SAMPLE.split()
    command = [sys.executable, str(SCRIPT), "--samples", "1", *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = re.search(r"(\d+) operators, (\d+) cases, 0 wrong", done.stdout)
    # As many operators as the sample names: a name that torch no longer has is to be replaced.
    assert cases is not None
    assert int(cases[1]) >= len(names)

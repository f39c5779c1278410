"""Backward passes on the virtual GPU: the script's own code sees the GPU, torch's own code sees meta tensors.

Within `backward()`, as in every function that it handles, a function mode is off. The script's code that runs there
(custom functions, hooks) needs it, so it is entered again; torch's own operators, which run there too, are called from
a dispatch mode, in which it is off.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from irscope.record.triton.patches import Patches
from irscope.record.virtual.torch.mode import VirtualCuda
from irscope.record.virtual.torch.rescue import EachOperator


def follow_backward(mode: VirtualCuda, patches: Patches, before: Callable[[Any], None]) -> None:
    """Enter the function mode in backward passes, until `patches` are closed.

    `before` is called with the outputs that a pass starts from.
    """
    run = torch.autograd.graph._engine_run_backward

    def run_in_mode(*args: Any, **kwargs: Any) -> Any:
        before(args[0] if args else kwargs.get("t_outputs", ()))
        with ExitStack() as stack:
            if not mode.is_on:
                stack.enter_context(mode)
            if not EachOperator.is_on():
                stack.enter_context(EachOperator())
            return run(*args, **kwargs)

    for module in (torch.autograd, torch.autograd.graph):
        patches.set_known(module, {"_engine_run_backward": run_in_mode})

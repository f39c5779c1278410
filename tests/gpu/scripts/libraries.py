"""A layer of a public kernel library, forward and backward: `libraries.py LIBRARY:LAYER DTYPE`."""

import sys

import torch

GPU = {"device": "cuda"}


def normal(*shape, dtype, grad=True):
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(grad)


def liger(layer, dtype):
    from liger_kernel import ops

    rows, columns = 256, 1000
    x, other = normal(rows, columns, dtype=dtype), normal(rows, columns, dtype=dtype)
    w, b = normal(columns, dtype=dtype), normal(columns, dtype=dtype)
    labels = torch.randint(0, columns, (rows,), **GPU)
    logs, shares = torch.log_softmax(x.float(), 1).to(dtype), torch.softmax(other.float(), 1).to(dtype)
    leaf = logs.detach().requires_grad_()
    target = shares.detach()
    if layer == "rope":
        q, k = normal(2, 8, 128, 64, dtype=dtype), normal(2, 4, 128, 64, dtype=dtype)
        angle = torch.rand(1, 128, 64, **GPU) * 6
        return sum(part.sum() * 1.5 for part in ops.LigerRopeFunction.apply(q, k, angle.cos(), angle.sin()))
    if layer == "group_norm":
        image = normal(4, 32, 100, dtype=dtype)
        scale, shift = normal(32, dtype=dtype), normal(32, dtype=dtype)
        return ops.LigerGroupNormFunction.apply(image, scale, shift, 32, 4, 1e-5)
    made = {
        "softmax": lambda: ops.LigerSoftmaxFunction.apply(x),
        "sparsemax": lambda: ops.LigerSparsemaxFunction.apply(x, -1),
        "layer_norm": lambda: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        "rms_norm": lambda: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
        "fused_add_rms_norm": lambda: ops.LigerFusedAddRMSNormFunction.apply(x, other, w, 1e-6, 0.0, "llama", False)[0],
        "swiglu": lambda: ops.LigerSiLUMulFunction.apply(x, other),
        "geglu": lambda: ops.LigerGELUMulFunction.apply(x, other),
        "relu_squared": lambda: ops.LigerReLUSquaredFunction.apply(x),
        "dyt": lambda: ops.LigerDyTFunction.apply(x, normal(1, dtype=dtype), w, b),
        "cross_entropy": lambda: ops.LigerCrossEntropyFunction.apply(
            x, labels, None, -100, 0.0, 0.1, "mean", None, False
        )[0],
        "kl_div": lambda: ops.LigerKLDivLossFunction.apply(leaf, target, "batchmean", False, 1e-10),
        "jsd": lambda: ops.LigerJSDFunction.apply(leaf, logs.detach().roll(1, 0), None, 0.5, -100, None, None),
        "tvd": lambda: ops.LigerTVDLossFunction.apply(shares.detach().requires_grad_(), target.roll(1, 0)),
    }
    return made[layer]()


def attorch(layer, dtype):
    import attorch as library

    x = normal(128, 500, dtype=dtype)
    labels = torch.randint(0, 500, (128,), **GPU)
    made = {
        "softmax": lambda: library.Softmax(-1)(x),
        "log_softmax": lambda: library.LogSoftmax(-1)(x),
        "layer_norm": lambda: library.LayerNorm(500, **GPU).to(dtype)(x),
        "rms_norm": lambda: library.RMSNorm(500, **GPU).to(dtype)(x),
        "gelu": lambda: library.GELU()(x),
        "mish": lambda: library.Mish()(x),
        "glu": lambda: library.GLU()(x),
        "cross_entropy": lambda: library.CrossEntropyLoss()(x, labels),
        "nll_loss": lambda: library.NLLLoss()(torch.log_softmax(x, 1), labels),
        "mse_loss": lambda: library.MSELoss()(x, normal(128, 500, dtype=dtype, grad=False)),
        "batch_norm": lambda: library.BatchNorm1d(500, **GPU)(x),
        "linear": lambda: library.Linear(500, 200, act_func="gelu", **GPU).to(dtype)(x),
    }
    return made[layer]()


torch.manual_seed(0)
library, _, layer = sys.argv[1].partition(":")
out = {"liger": liger, "attorch": attorch}[library](layer, getattr(torch, sys.argv[2]))
out.backward(torch.randn_like(out) if out.dim() else None)
torch.cuda.synchronize()
print(f"{sys.argv[1]}: done")

"""The kernels of the examples as the machine's tests run them, and what they compute, in NumPy's float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from tests.once import kept

SCRIPT = Path(__file__).with_name("small_examples.py")
Tensors = Mapping[str, np.ndarray]


def recorded(script: Path, target: str, *arguments: str) -> tuple[Capture, ...]:
    """The captures of a script on a target; recorded once in a run of the tests."""
    request = request_for(script, targets=(target,), disassemble=False, layouts=False, arguments=arguments)
    key = ("machine", script.read_text("utf-8"), target, arguments)
    return kept(key, lambda: tuple(record_request(request).captures))


def small_examples(target: str, *arguments: str) -> dict[str, Capture]:
    """Kernel → its capture on a target."""
    # Both transposes are kernels of one name.
    return {f"{one.launch.language} {one.name}": one for one in recorded(SCRIPT, target, *arguments)}


def _softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _cross_entropy(t: Tensors) -> np.ndarray:
    logits = t["logits_ptr"]
    largest = logits.max(axis=1, keepdims=True)
    sums = np.log(np.exp(logits - largest).sum(axis=1)) + largest[:, 0]
    return sums - np.take_along_axis(logits, t["target_ptr"].astype(np.int64)[:, None], 1)[:, 0]


def _layer_norm(t: Tensors) -> np.ndarray:
    x = t["x_ptr"]
    deviation = x - x.mean(axis=1, keepdims=True)
    return deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-5) * t["weight_ptr"] + t["bias_ptr"]


def _layer_norm_backward(t: Tensors) -> np.ndarray:
    normal = (t["x_ptr"] - t["mean_ptr"][:, None]) * t["rstd_ptr"][:, None]
    scaled = t["dout_ptr"] * t["weight_ptr"]
    shift = scaled.mean(axis=1, keepdims=True) + normal * (scaled * normal).mean(axis=1, keepdims=True)
    return (scaled - shift) * t["rstd_ptr"][:, None]


def _attention(t: Tensors) -> np.ndarray:
    scores = t["q_ptr"] @ np.swapaxes(t["k_ptr"], -1, -2) / np.sqrt(t["q_ptr"].shape[-1])
    sees = np.tril(np.ones(scores.shape[-2:], bool))
    return _softmax(np.where(sees, scores, -np.inf)) @ t["v_ptr"]


def _partial_sums(t: Tensors) -> np.ndarray:
    terms = np.where(t["x_ptr"][None, :] * t["y_ptr"][:, None] > 0, t["dz_ptr"] * t["y_ptr"][:, None], 0.0)
    return np.stack([terms[:256].sum(axis=0), terms[256:].sum(axis=0)])


def _product(t: Tensors) -> np.ndarray:
    return t["a_ptr"] @ t["b_ptr"]


REFERENCES: dict[str, tuple[str, Callable[[Tensors], np.ndarray], float]] = {
    "triton add_kernel": ("out_ptr", lambda t: t["x_ptr"] + t["y_ptr"], 1e-6),
    "triton copy_kernel": ("out_ptr", lambda t: t["x_ptr"], 0),
    "triton transpose_kernel": ("out_ptr", lambda t: t["x_ptr"].T, 0),
    "gluon transpose_kernel": ("out_ptr", lambda t: t["x_ptr"].T, 0),
    "triton softmax_kernel": ("out_ptr", lambda t: _softmax(t["x_ptr"]), 1e-6),
    "triton cross_entropy_kernel": ("loss_ptr", _cross_entropy, 1e-5),
    "triton mul_relu_backward_kernel": ("partial_ptr", _partial_sums, 1e-5),
    "triton attention_1d_kernel": ("z_ptr", lambda t: _softmax(np.outer(t["q_ptr"], t["k_ptr"])) @ t["v_ptr"], 1e-5),
    "triton layer_norm_forward_kernel": ("out_ptr", _layer_norm, 1e-2),
    "triton layer_norm_backward_kernel": ("dx_ptr", _layer_norm_backward, 1e-2),
    "triton matmul_naive_kernel": ("c_ptr", _product, 1e-3),
    "triton matmul_grouped_kernel": ("c_ptr", _product, 1e-3),
    "triton matmul_tma_kernel": ("c_ptr", _product, 1e-3),
    "triton batched_matmul_kernel": ("c_ptr", _product, 1e-3),
    "triton attention_kernel": ("z_ptr", _attention, 2e-3),
}
"""Kernel → the tensor that it computes, what that is of the arguments, and the relative error that its type allows."""


def relative_error(found: Any, expected: Any) -> float:
    """The norm of the difference in units of the expected one's; infinite where a NaN stands in one alone."""
    if np.array_equal(found, expected):
        return 0.0
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if found.shape != expected.shape or not np.array_equal(np.isnan(found), np.isnan(expected)):
        return float("inf")
    difference = np.nan_to_num(found) - np.nan_to_num(expected)
    return float(np.linalg.norm(difference) / max(float(np.linalg.norm(np.nan_to_num(expected))), 1e-300))

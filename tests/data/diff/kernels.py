"""The kernels that the samples beside this file were compiled from."""

import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * sam + rk[None, :]
    b = b_ptr + rk[:, None] * sbk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK
        b += BK * sbk
    c = c_ptr + rm[:, None] * scm + rn[None, :]
    tl.store(c, acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def softmax(out, inp, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(inp + row * in_stride + cols, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    num = tl.exp(x)
    tl.store(out + row * out_stride + cols, num / tl.sum(num, axis=0), mask=mask)


@triton.jit
def _attend(acc, l_i, m_i, q, K, V, sk, offs_m, offs_n, lo, hi, scale, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    offs_d = tl.arange(0, D)
    for start in range(lo, hi, BN):
        k = tl.load(K + (start + offs_n)[None, :] * sk + offs_d[:, None])
        qk = tl.dot(q, k)
        if CAUSAL:
            qk = qk * scale + tl.where(offs_m[:, None] >= (start + offs_n[None, :]), 0, -1.0e6)
        else:
            qk = qk * scale
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + (start + offs_n)[:, None] * sk + offs_d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit
def flash_attention(Q, K, V, O, sq, sk, scale, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start_m = tl.program_id(0)
    offs_m = start_m * BM + tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + offs_m[:, None] * sq + offs_d[None, :])
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    scale = scale * 1.44269504
    acc, l_i, m_i = _attend(acc, l_i, m_i, q, K, V, sk, offs_m, offs_n, 0, start_m * BM, scale, BN, D, False)
    acc, l_i, m_i = _attend(acc, l_i, m_i, q, K, V, sk, offs_m, offs_n, start_m * BM, (start_m + 1) * BM, scale, BN, D, True)
    tl.store(O + offs_m[:, None] * sq + offs_d[None, :], (acc / l_i[:, None]).to(tl.float16))

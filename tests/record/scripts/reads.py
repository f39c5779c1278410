import numpy as np
import pytest
import torch

x = torch.randn(128, 256, device="cuda")
y = torch.empty_like(x)
host = torch.randn(128, 256)

# What checks itself, passes.
assert torch.allclose(x, y)
assert torch.equal(x, y)
assert torch.isclose(x, y).all()
assert (x == y).all()
assert not (x != y).any()
assert (x != y).sum().item() == 0
assert (x == y).sum().item() == x.numel()
assert (x - y).abs().max().item() < 1e-3
assert (x - y).abs().max() < 1e-3
assert not torch.isnan(x).any()
assert torch.isfinite(x).all()
assert not (~torch.isfinite(x)).any()
assert (x.abs() > 0).all()
assert torch.allclose(y.cpu(), host)
assert torch.allclose(host.cuda(), y)
torch.testing.assert_close(x, y)
torch.testing.assert_close(x.cpu(), host, rtol=1e-2, atol=1e-2)
np.testing.assert_allclose(y.cpu().numpy(), host.numpy(), rtol=1e-3)
assert np.allclose(host.numpy(), y.cpu().numpy())
assert np.abs(y.cpu().numpy() - host.numpy()).max() == 0
if (x - y).norm() > 1.0:
    raise AssertionError("the two differ")
with pytest.raises(AssertionError, match="shape"):
    torch.testing.assert_close(x, y[:1])

# What is read, is a number.
assert isinstance(x.sum().item(), float)
assert isinstance(float(x[0, 0]), float)
assert isinstance(int(x.argmax()), int)
assert isinstance(x[:2, :2].tolist()[0][0], float)
assert f"{x.mean():.3f}" == "0.000"
assert "cuda:0" in repr(x)
assert "cuda:0" in str(torch.nn.Parameter(x))
assert "size=(128, 256)" in f"{x}"
assert x.cpu().numpy().shape == (128, 256)
assert len(x) == 128
assert sum(1 for _ in x[:4]) == 4

# Shapes that depend on data.
mask = x > 0
assert x[mask].dim() == 1
x[mask] = 0.0
x[x < 0] = x[x < 0] * 2
assert torch.nonzero(mask).shape[1] == 2
rows, columns = torch.where(mask)
assert rows.shape == columns.shape
assert torch.masked_select(x, mask).dim() == 1
assert x[:, torch.randperm(256, device="cuda")].shape == x.shape
values, counts = torch.unique(torch.randint(0, 5, (100000,), device="cuda"), return_counts=True)
assert values.shape == counts.shape
assert torch.topk(x, 4).indices.is_cuda
assert torch.multinomial(torch.rand(4, 8, device="cuda"), 2).shape == (4, 2)

# Small tensors of integers are no placeholder values: they say how large other tensors are.
lengths = torch.tensor([3, 5, 8], device="cuda")
starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
assert starts.tolist() == [0, 3, 8, 16]
assert lengths.max().item() == 8
assert (starts[1:] - starts[:-1] == lengths).all()
assert torch.repeat_interleave(torch.arange(3, device="cuda"), lengths).shape == (16,)
assert lengths[lengths > 4].tolist() == [5, 8]
assert torch.nonzero(lengths == 5).tolist() == [[1]]
lengths[1] = 7
lengths += 1
assert lengths.cpu().tolist() == [4, 8, 9]
assert torch.tensor([1.5, 2.5], device="cuda").sum().item() == 4.0
assert "[4, 8, 9]" in repr(lengths)
assert [int(length) for length in lengths] == [4, 8, 9]
lengths.copy_(torch.empty(3, device="cuda"))
assert lengths.tolist() == [0, 0, 0]

# What lives on the host is as it always was.
assert not torch.allclose(host, torch.zeros_like(host))
assert host.device.type == "cpu"
assert not host.is_cuda
assert torch.arange(4).sum().item() == 6
assert host[host > 0].numel() == int((host > 0).sum())
host.copy_(x)
assert host.sum().item() == 0

"""The random number generators of the virtual device: their states have the format of a GPU's."""

from __future__ import annotations

import os
import struct
from typing import Any

import torch

from irscope.record.triton.patches import Patches
from irscope.record.virtual.torch import memory as virtual_memory
from irscope.record.virtual.torch.memory import CPU, CUDA, META, Memory

_STATE = struct.Struct("<QQ")
"""Seed and offset of the Philox generator. Source: `CUDAGeneratorImpl::get_state` in torch."""
_DEFAULT_SEED = 67280421310721
"""Source: `default_rng_seed_val` in torch's `c10/core/GeneratorImpl.h`."""


def install_random(memory: Memory, patches: Patches) -> None:
    """Stand in for `torch.Generator` and the functions of `torch.cuda.random`, until `patches` are closed."""
    real = torch.Generator

    class Kind(type(real)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return type.__instancecheck__(real, instance)

        def __call__(cls, device: Any = "cpu") -> Any:
            device = torch.device(device)
            return type.__call__(cls) if device.type == "cuda" else real(device)

    class Generator(real, metaclass=Kind):  # type: ignore[misc, valid-type]
        """A generator of the device, which generates nothing: the tensors that it would fill have no data."""

        def __init__(self) -> None:
            super().__init__()
            self._seed, self._offset = _DEFAULT_SEED, 0

        @property
        def device(self) -> torch.device:
            return CUDA

        def manual_seed(self, seed: int) -> Any:
            self._seed, self._offset = seed % (1 << 64), 0
            return self

        def seed(self) -> int:
            self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 11)
            return self._seed

        def initial_seed(self) -> int:
            return self._seed

        def get_offset(self) -> int:
            return self._offset

        def set_offset(self, offset: int) -> None:
            self._offset = offset

        def get_state(self) -> torch.Tensor:
            with torch._C.DisableTorchFunction():
                values = torch.tensor(list(_STATE.pack(self._seed, self._offset)), dtype=torch.uint8, device="cpu")
                # How many numbers a GPU would have drawn is not known.
                state = memory.mark(values.to(META), CPU)
                return virtual_memory.store_values(state, values, is_placeholder=True)

        def set_state(self, new_state: torch.Tensor) -> Any:
            if new_state.dtype is not torch.uint8 or new_state.numel() not in (_STATE.size, 8):
                raise RuntimeError("RNG state is wrong size")
            with torch._C.DisableTorchFunction():
                stored = virtual_memory.values_of(new_state)
                values = bytes(_STATE.size) if stored is None else bytes(stored.values.tolist())
            # A state of 8 bytes is a seed alone; torch takes it too.
            values = values.ljust(_STATE.size, b"\0")
            self._seed, self._offset = _STATE.unpack(values)
            return self

        def clone_state(self) -> Any:
            return Generator("cuda").set_state(self.get_state())  # type: ignore[call-arg]

        def graphsafe_get_state(self) -> Any:
            return self

        def graphsafe_set_state(self, state: Any) -> Any:
            return self.set_state(state.get_state())

        def __reduce__(self) -> Any:
            return torch.Generator, (CUDA,)

    default: Any = Generator("cuda")  # type: ignore[call-arg]
    answers: dict[str, Any] = {
        "default_generators": (default,),
        "get_rng_state": lambda *_, **__: default.get_state(),
        "get_rng_state_all": lambda: [default.get_state()],
        "set_rng_state": lambda new_state, *_, **__: _nothing(default.set_state(new_state)),
        "set_rng_state_all": lambda new_states: _nothing([default.set_state(state) for state in new_states]),
        "manual_seed": lambda seed: _nothing(default.manual_seed(int(seed))),
        "manual_seed_all": lambda seed: _nothing(default.manual_seed(int(seed))),
        "seed": lambda: _nothing(default.seed()),
        "seed_all": lambda: _nothing(default.seed()),
        "initial_seed": default.initial_seed,
    }
    patches.set(torch, "Generator", Generator)
    for module in (torch.cuda, torch.cuda.random):
        patches.set_known(module, answers)


def _nothing(_: Any) -> None:
    return None

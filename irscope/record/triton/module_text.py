"""The text of the MLIR module that passes work on, printed again only if something of it changed."""

from __future__ import annotations

from typing import Any

from irscope.record.triton.native_calls import NativeCalls


class LatestText:
    """The text of a module, printed again only if the module changed."""

    def __init__(self, native: NativeCalls) -> None:
        self._native = native
        self._text: str | None = None
        self._fingerprint: bytes | None = None
        self._module: Any = None
        self._operation: int | None = None

    @property
    def text(self) -> str | None:
        """The last text; None before the first, and after a change that was not printed."""
        return self._text

    def text_of(self, module: Any) -> str:
        """The current text of a module, which has been verified."""
        fingerprint = self._fingerprint_of(module)
        if self._text is None or fingerprint is None or fingerprint != self._fingerprint:
            self._text = self._native.text_of_verified(module)
        self._fingerprint = fingerprint
        return self._text

    def assume(self, text: str) -> None:
        """Take a text as the last one: it was made in another process."""
        self._text, self._fingerprint = text, None

    def invalidate(self) -> None:
        """Forget the text: the module changed, and is not printed."""
        self._text = self._fingerprint = None

    def release(self) -> None:
        """Drop the reference to the module, and keep its text."""
        self._module = self._operation = self._fingerprint = None

    def operation_of(self, module: Any) -> int | None:
        """The address of a module's operation, looked for once; None if that is not known."""
        if module is not self._module:
            self._module, self._operation = module, self._native.operation_of(module)
        return self._operation

    def _fingerprint_of(self, module: Any) -> bytes | None:
        operation = self.operation_of(module)
        return None if operation is None else self._native.fingerprint_of(operation)

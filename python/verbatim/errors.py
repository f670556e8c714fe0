"""What goes wrong, as exceptions: what, where, and what to do next."""

from __future__ import annotations


class Error(Exception):
    """Base of all errors of this package.

    `code` is the exit code that the command line has for this kind of error, `message` says what
    is wrong and where, `hint` what to do next (or is empty).
    """

    code: int = 4

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(Error):
    """The caller asked for something that makes no sense."""

    code = 2


class BadInputError(Error):
    """A file is malformed, damaged or of an unknown version."""

    code = 3


class FailedError(Error):
    """The run or the machine failed: disk, device, peer."""

    code = 4


_BY_CODE: dict[int, type[Error]] = {2: UsageError, 3: BadInputError, 4: FailedError}


def error_of(code: int, message: str, hint: str) -> Error:
    """The exception for an error of the native part, which calls this."""
    return _BY_CODE.get(code, FailedError)(message, hint)

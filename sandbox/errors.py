"""What can break between us and a sandbox. A command that ran and failed is not here."""

from __future__ import annotations

TOO_SLOW = (
    "it hangs or needs longer, which is the bundle's fault, or this machine was too busy:"
    " try again when it is not"
)
"""What a build that did not end in its time may mean."""


class SandboxError(Exception):
    """Base of all errors of this floor. The message is one line: what, where, what to do."""


class SandboxUnavailable(SandboxError):
    """The machinery could not run a command (engine gone, sandbox dead). May be tried again."""


class ImageBuildFailed(SandboxError):
    """The image does not build, through the bundle's own fault. `log` holds the last lines.

    A build that did not end in its time is one, too: whose fault it was, only another try can tell.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class Refused(SandboxError):
    """This back-end cannot do what is asked as asked, and will not weaken it. Names the way out."""


class TooLarge(Refused):
    """More would be read than was allowed: the work's doing, not the machinery's."""


class TooDeep(TooLarge):
    """Folders are nested deeper than is carried: nothing was too big, and no quota struck."""

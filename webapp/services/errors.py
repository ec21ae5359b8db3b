"""What a service may refuse. Each message is one line for a person."""

from __future__ import annotations


class ServiceError(Exception):
    """Base of all refusals."""


class TransitionRefused(ServiceError):
    """The row was not in a status that may become the wanted one."""


class StaleReview(ServiceError):
    """The decision names another digest, or an environment whose state has moved on."""


class NotAllowed(ServiceError):
    """This person may not do this."""


class InvalidInput(ServiceError):
    """What was given cannot be accepted. `field` names the form field, if one is at fault."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field

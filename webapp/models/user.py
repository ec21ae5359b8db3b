"""People, and what each may do."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.IntegerChoices):
    """Each role may do what those below it may, and more."""

    VIEWER = 10, "Viewer"
    REVIEWER = 20, "Reviewer"
    CURATOR = 30, "Curator"
    OPERATOR = 40, "Operator"
    ADMIN = 50, "Admin"


class User(AbstractUser):
    """An account."""

    role = models.PositiveSmallIntegerField(choices=Role.choices, default=Role.VIEWER)

    def has_role(self, role: Role) -> bool:
        """Whether this person may do what `role` may."""
        return self.is_active and (self.is_superuser or self.role >= role)

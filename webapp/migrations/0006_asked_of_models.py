"""What is asked of models: reserved calls, single requests, the limits of a step."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("webapp", "0005_model_calls")]
    operations: ClassVar = []

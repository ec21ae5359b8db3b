import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("webapp", "0003_gate_cache")]

    operations = [
        migrations.CreateModel(
            name="Import",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sources", models.JSONField(default=list)),
                ("tags", models.JSONField(blank=True, default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                (
                    "outcome",
                    models.CharField(choices=[("imported", "Imported"), ("known", "Known"), ("refused", "Refused")], max_length=10),
                ),
                ("origin", models.TextField()),
                ("file", models.TextField(blank=True)),
                ("reason", models.TextField(blank=True)),
                ("notes", models.JSONField(blank=True, default=list)),
                (
                    "batch",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="webapp.import"),
                ),
                (
                    "environment",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="import_entries", to="webapp.environment"),
                ),
            ],
            options={
                "ordering": ["position"],
                "constraints": [
                    models.UniqueConstraint(fields=("batch", "position"), name="import_entry_once"),
                    models.CheckConstraint(
                        condition=Q(outcome__in=["imported", "known", "refused"]), name="import_entry_outcome_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(outcome="refused", environment__isnull=True)
                        | (~Q(outcome="refused") & Q(environment__isnull=False)),
                        name="import_entry_seed_or_refused",
                    ),
                ],
            },
        ),
    ]

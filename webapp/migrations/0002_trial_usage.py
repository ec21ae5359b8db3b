from django.db import migrations, models
from django.db.models import Exists, OuterRef


def name_the_sandbox(apps, _editor):
    """So far bubblewrap on the host's own root was the only way, and no verdict said so."""
    trials = apps.get_model("webapp", "Trial").objects.filter(
        verification=OuterRef("pk"), backend="bubblewrap"
    )
    apps.get_model("webapp", "Verification").objects.filter(Exists(trials), backend="").update(
        backend="bubblewrap"
    )


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='trial',
            name='cpu_seconds',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='trial',
            name='is_traced',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='trial',
            name='peak_memory_bytes',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='trial',
            name='solver_seconds',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='verification',
            name='depth',
            field=models.CharField(choices=[('quick', 'quick'), ('full', 'full')], default='quick', max_length=5),
        ),
        migrations.RunPython(name_the_sandbox, migrations.RunPython.noop),
    ]

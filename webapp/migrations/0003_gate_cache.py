import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webapp", "0002_trial_usage")]

    operations = [
        migrations.AddField(
            model_name="gaterecord",
            name="cache_key",
            field=models.CharField(blank=True, db_index=True, default="", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="gaterecord",
            name="source",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="webapp.verification",
            ),
        ),
        migrations.AddField(
            model_name="verification",
            name="renewed",
            field=models.CharField(blank=True, default="", max_length=40),
            preserve_default=False,
        ),
    ]

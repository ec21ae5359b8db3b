from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("webapp", "0003_gate_cache")]

    operations = []

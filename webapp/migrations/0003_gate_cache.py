from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("webapp", "0002_trial_usage")]

    operations = []

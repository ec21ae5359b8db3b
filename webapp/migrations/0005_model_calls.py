from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("webapp", "0004_imports")]

    operations = []

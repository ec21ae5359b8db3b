import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0004_imports'),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.TextField()),
                ('key', models.CharField(max_length=64)),
                ('role', models.CharField(choices=[('proposer', 'proposer'), ('plan_reviewer', 'plan_reviewer'), ('modifier', 'modifier'), ('exploiter', 'exploiter'), ('judge', 'judge'), ('triage', 'triage'), ('cold_start', 'cold_start'), ('solver', 'solver')], max_length=20)),
                ('model', models.CharField(max_length=200)),
                ('prompt_digest', models.CharField(blank=True, max_length=64)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('outcome', models.CharField(choices=[('answered', 'answered'), ('rate_limited', 'rate_limited'), ('server_error', 'server_error'), ('connection', 'connection'), ('timeout', 'timeout'), ('refused', 'refused'), ('empty', 'empty'), ('malformed', 'malformed'), ('too_large', 'too_large'), ('context_overflow', 'context_overflow'), ('bad_request', 'bad_request'), ('auth', 'auth'), ('budget', 'budget'), ('circuit_open', 'circuit_open'), ('cancelled', 'cancelled')], max_length=20)),
                ('reason', models.TextField(blank=True)),
                ('input_tokens', models.BigIntegerField(default=0)),
                ('output_tokens', models.BigIntegerField(default=0)),
                ('cached_tokens', models.BigIntegerField(default=0)),
                ('usd', models.FloatField(default=0.0)),
                ('is_estimated', models.BooleanField(default=False)),
                ('seconds', models.FloatField(default=0.0)),
                ('request_digest', models.CharField(blank=True, max_length=64)),
                ('response_digest', models.CharField(blank=True, max_length=64)),
                ('text', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name='evolutionrun',
            name='budget_seconds',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='evolutionrun',
            name='budget_tokens',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='evolutionrun',
            name='budget_usd',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='evolutionrun',
            name='pause_reason',
            field=models.CharField(blank=True, choices=[('budget', 'budget'), ('model', 'model')], max_length=10),
        ),
        migrations.AddField(
            model_name='evolutionrun',
            name='replay_of',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='webapp.evolutionrun'),
        ),
        migrations.AddField(
            model_name='evolutionstep',
            name='excused',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='measuredtrial',
            name='cast_digest',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='measuredtrial',
            name='output_digest',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='measuredtrial',
            name='reward',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='measuredtrial',
            name='trajectory_digest',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='measuredtrial',
            name='usd',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name='evolutionrun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('budget_usd__isnull', True), models.Q(('budget_usd__gte', 0), ('budget_usd__lt', 1000000000.0)), _connector='OR'), models.Q(('budget_tokens__isnull', True), ('budget_tokens__gte', 0), _connector='OR'), models.Q(('budget_seconds__isnull', True), models.Q(('budget_seconds__gte', 0), ('budget_seconds__lt', 1000000000.0)), _connector='OR')), name='run_budget_sane'),
        ),
        migrations.AddField(
            model_name='modelcall',
            name='environment',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='webapp.environment'),
        ),
        migrations.AddField(
            model_name='modelcall',
            name='run',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='webapp.evolutionrun'),
        ),
        migrations.AddField(
            model_name='modelcall',
            name='step',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='webapp.evolutionstep'),
        ),
        migrations.AddIndex(
            model_name='modelcall',
            index=models.Index(fields=['step', 'id'], name='call_step'),
        ),
        migrations.AddIndex(
            model_name='modelcall',
            index=models.Index(fields=['run', 'role'], name='call_run_role'),
        ),
        migrations.AddIndex(
            model_name='modelcall',
            index=django.contrib.postgres.indexes.GinIndex(django.contrib.postgres.search.SearchVector('text', config='simple'), name='call_words'),
        ),
        migrations.AddConstraint(
            model_name='modelcall',
            constraint=models.UniqueConstraint(condition=models.Q(('outcome__in', ['answered', 'refused', 'empty', 'context_overflow'])), fields=('run', 'key'), name='call_answered_once'),
        ),
        migrations.AddConstraint(
            model_name='modelcall',
            constraint=models.UniqueConstraint(condition=models.Q(('outcome__in', ['answered', 'refused', 'empty', 'context_overflow']), ('run__isnull', True)), fields=('environment', 'key'), name='call_answered_once_outside_runs'),
        ),
        migrations.AddConstraint(
            model_name='modelcall',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__in', ['answered', 'rate_limited', 'server_error', 'connection', 'timeout', 'refused', 'empty', 'malformed', 'too_large', 'context_overflow', 'bad_request', 'auth', 'budget', 'circuit_open', 'cancelled'])), name='call_outcome_known'),
        ),
        migrations.AddConstraint(
            model_name='modelcall',
            constraint=models.CheckConstraint(condition=models.Q(('cached_tokens__gte', 0), ('input_tokens__gte', 0), ('output_tokens__gte', 0), ('usd__gte', 0), ('usd__lt', 1000000000.0)), name='call_usage_sane'),
        ),
    ]

"""Makes a guide for channels without one."""

from datetime import timedelta

from apps.channels.models import Channel
from apps.epg.models import EPGData, EPGSource, ProgramData
from django.db import transaction
from django.utils import timezone


class Plugin:
    name = "Make guide"
    actions = [{"id": "main", "label": "Make"}]

    def run(self, action, params, context):
        source, created = EPGSource.objects.get_or_create(name="Made guide", defaults={"source_type": "dummy"})
        start = timezone.now().replace(minute=0, second=0, microsecond=0)
        written = 0
        for channel in Channel.objects.filter(epg_data__isnull=True):
            guide, _ = EPGData.objects.get_or_create(
                tvg_id=f"made-{channel.id}", epg_source=source, defaults={"name": channel.name}
            )
            with transaction.atomic():
                ProgramData.objects.filter(epg=guide).delete()
                programs = [
                    ProgramData(
                        epg=guide,
                        tvg_id=guide.tvg_id,
                        start_time=start + timedelta(hours=n),
                        end_time=start + timedelta(hours=n + 1),
                        title=f"{channel.name} {n}",
                        description="All day",
                    )
                    for n in range(6)
                ]
                ProgramData.objects.bulk_create(programs, batch_size=1000)
            channel.epg_data = guide
            channel.save()
            written += len(programs)
        late = ProgramData.objects.filter(epg__epg_source=source, start_time__gte=start + timedelta(hours=4)).count()
        return {"status": "ok", "created": created, "written": written, "late": late}

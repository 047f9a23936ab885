"""Removes streams with an address that another one has, and keeps the channels that use them."""

from apps.channels.models import Channel, ChannelStream, Stream
from django.db.models import Count, Q


class Plugin:
    name = "Dedupe"
    actions = [{"id": "main", "label": "Dedupe"}]

    def run(self, action, params, context):
        twice = Stream.objects.exclude(Q(url__isnull=True) | Q(url="")).values("url").annotate(n=Count("id")).filter(n__gt=1)
        removed = 0
        for entry in twice.order_by("url"):
            kept, *others = Stream.objects.filter(url=entry["url"]).order_by("id")
            for other in others:
                for link in ChannelStream.objects.filter(stream=other):
                    ChannelStream.objects.get_or_create(
                        channel=link.channel, stream=kept, defaults={"order": link.order}
                    )
                    link.delete()
                other.delete()
                removed += 1
        empty = Channel.objects.annotate(n=Count("streams")).filter(n=0).count()
        return {"status": "ok", "removed": removed, "empty": empty}

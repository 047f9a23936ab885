"""Exchanges the numbers of two channels without a transaction, and begins one that fails."""

from apps.channels.models import Channel
from django.db import transaction


class Plugin:
    name = "One by one"
    actions = [{"id": "main", "label": "Exchange"}]

    def run(self, action, params, context):
        first, second = Channel.objects.order_by("channel_number")[:2]
        first.channel_number, second.channel_number = second.channel_number, first.channel_number
        first.save()
        second.save()
        try:
            with transaction.atomic():
                first.name = "Never"
                first.save()
                raise ValueError("no")
        except ValueError:
            pass
        return {"status": "ok", "names": list(Channel.objects.values_list("name", flat=True))}

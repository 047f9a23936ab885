"""Numbers the channels of each group, in the order of their names."""

from apps.channels.models import Channel, ChannelGroup
from django.db import transaction


class Plugin:
    name = "Renumber"
    actions = [{"id": "main", "label": "Renumber"}]

    def run(self, action, params, context):
        number = int(params.get("start", 100))
        changed = []
        with transaction.atomic():
            for group in ChannelGroup.objects.order_by("name"):
                for channel in Channel.objects.filter(channel_group=group).order_by("name").select_for_update():
                    channel.channel_number = number
                    channel.save(update_fields=["channel_number"])
                    changed.append(channel.id)
                    number += 1
        return {"status": "ok", "message": f"{len(changed)} channels"}

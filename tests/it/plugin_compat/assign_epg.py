"""Gives each channel without a guide the guide channel with its name."""

import re

from apps.channels.models import Channel
from apps.epg.models import EPGData


def plain(name):
    return re.sub(r"\b(hd|fhd|sd)\b|[^a-z0-9]", "", name.lower())


class Plugin:
    name = "Assign EPG"
    actions = [{"id": "main", "label": "Assign"}]

    def run(self, action, params, context):
        guides = {plain(it.name): it for it in EPGData.objects.select_related("epg_source") if it.epg_source.is_active}
        found = []
        for channel in Channel.objects.filter(epg_data__isnull=True):
            guide = guides.get(plain(channel.name))
            if guide is None:
                continue
            channel.epg_data = guide
            channel.tvg_id = guide.tvg_id
            found.append(channel)
        Channel.objects.bulk_update(found, ["epg_data", "tvg_id"])
        return {"status": "ok", "assigned": [it.name for it in found]}

"""Moves channels into groups by regular expressions."""

import re

from apps.channels.models import Channel, ChannelGroup

RULES = "^UK: => United Kingdom\n(?i)sport => Sport"


class Plugin:
    name = "Regroup"
    fields = [{"id": "rules", "label": "Rules", "type": "text", "default": RULES}]
    actions = [{"id": "main", "label": "Regroup"}]

    def run(self, action, params, context):
        moved = 0
        for line in context["settings"]["rules"].splitlines():
            pattern, _, name = line.partition(" => ")
            group, created = ChannelGroup.objects.get_or_create(name=name)
            wanted = Channel.objects.filter(name__regex=pattern).exclude(channel_group=group)
            moved += wanted.update(channel_group=group)
        return {"status": "ok", "moved": moved, "groups": list(ChannelGroup.objects.values_list("name", flat=True))}

"""Writes a playlist file."""

import os

from apps.channels.models import Channel


class Plugin:
    name = "Export"
    actions = [{"id": "main", "label": "Export"}]

    def run(self, action, params, context):
        path = os.path.join(context["data_dir"], "list.m3u")
        channels = Channel.objects.select_related("channel_group", "logo").prefetch_related("streams")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#EXTM3U\n")
            for channel in channels.order_by("channel_number"):
                stream = channel.streams.order_by("channelstream__order").first()
                if stream is None:
                    continue
                logo = channel.logo.url if channel.logo else ""
                group = channel.channel_group.name if channel.channel_group else ""
                file.write(
                    f'#EXTINF:-1 tvg-chno="{int(channel.channel_number)}" tvg-logo="{logo}" '
                    f'group-title="{group}",{channel.name}\n{stream.url}\n'
                )
        return {"status": "ok", "text": open(path, encoding="utf-8").read()}

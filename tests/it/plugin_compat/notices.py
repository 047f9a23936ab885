"""Tells people about changes, over the WebSocket and as a notification."""

from apps.channels.models import Channel
from apps.plugins.models import PluginConfig
from apps.proxy.ts_proxy.services.channel_service import ChannelService
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from core.models import SystemNotification
from core.utils import send_websocket_update


class Plugin:
    name = "Notices"
    fields = [{"id": "word", "label": "Word", "type": "string", "default": "hello"}]
    actions = [{"id": "main", "label": "Tell"}]

    def run(self, action, params, context):
        send_websocket_update("updates", "update", {"type": "plugin_notice", "channels": Channel.objects.count()})
        layer = get_channel_layer()
        async_to_sync(layer.group_send)("updates", {"type": "update", "data": {"type": "second"}})
        SystemNotification.objects.update_or_create(
            notification_key="notices-plugin",
            defaults={"title": "Notice", "message": f"{Channel.objects.count()} channels"},
        )
        stopped = ChannelService.stop_channel(str(Channel.objects.first().uuid))
        config = PluginConfig.objects.get(key=context["plugin_key"])
        config.settings["word"] = "bye"
        config.save()
        return {"status": "ok", "stopped": stopped["status"], "word": PluginConfig.objects.get(key="notices").settings}

"""Gives channels logos by their guide ids, and removes logos that nothing uses."""

from apps.channels.models import Channel, Logo
from django.db import IntegrityError


class Plugin:
    name = "Logos"
    actions = [{"id": "main", "label": "Logos"}]

    def run(self, action, params, context):
        for channel in Channel.objects.exclude(tvg_id="").exclude(tvg_id__isnull=True):
            logo, _ = Logo.objects.get_or_create(
                url=f"http://logos.example/{channel.tvg_id}.png", defaults={"name": channel.name}
            )
            if channel.logo_id != logo.id:
                channel.logo = logo
                channel.save(update_fields=["logo"])
        unused = Logo.objects.filter(channels__isnull=True)
        names = sorted(unused.values_list("name", flat=True))
        unused.delete()
        try:
            Logo.objects.create(name="", url="http://logos.example/none.png")
            refused = ""
        except (IntegrityError, Exception) as error:
            refused = type(error).__name__
        return {"status": "ok", "unused": names, "refused": refused}

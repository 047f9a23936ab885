"""Runs a task again and again."""

import json

from apps.channels.models import ChannelGroup
from celery import shared_task
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask


@shared_task(name="periodic.touch", bind=True)
def touch(self, name):
    ChannelGroup.objects.get_or_create(name=name)
    return name


class Plugin:
    name = "Periodic"
    actions = [{"id": "main", "label": "Begin"}, {"id": "now", "label": "Now"}, {"id": "end", "label": "End"}]

    def run(self, action, params, context):
        if action == "now":
            return {"status": "ok", "made": touch.delay("Touched").get(timeout=60)}
        if action == "end":
            PeriodicTask.objects.filter(name="periodic touch").delete()
            return {"status": "ok", "left": PeriodicTask.objects.count()}
        hourly, _ = IntervalSchedule.objects.get_or_create(every=2, period=IntervalSchedule.HOURS)
        nightly, _ = CrontabSchedule.objects.get_or_create(minute="30", hour="4", timezone="UTC")
        members = {"task": "periodic.touch", "interval": hourly, "args": json.dumps(["By schedule"])}
        PeriodicTask.objects.update_or_create(name="periodic touch", defaults=members)
        task, created = PeriodicTask.objects.update_or_create(
            name="periodic touch", defaults={"interval": None, "crontab": nightly, "enabled": True}
        )
        return {"status": "ok", "created": created, "cron": str(task.crontab), "schedules": context["schedule"].list()}

"""Runs a task again and again."""

import json

from apps.channels.models import ChannelGroup
from celery import shared_task
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask


@shared_task(name="periodic.touch", bind=True)
def touch(self, name):
    ChannelGroup.objects.get_or_create(name=name)
    return name


def edges():
    """What differs from the reference is converted or refused."""
    refused = []
    every = IntervalSchedule(every=1, period="days")
    for name, value in (("one_off", True), ("expires", "2030-01-01"), ("start_time", "2030-01-01")):
        try:
            PeriodicTask(name=f"edge {name}", task="periodic.touch", interval=every, **{name: value}).save()
        except Exception as error:
            refused.append(f"{type(error).__name__}: {error.name}")
    intervals = ((45, "minutes"), (90, "seconds"), (7, "hours"), (36, "hours"), (30, "minutes"), (3, "days"))
    return {
        "refused": refused,
        "intervals": [IntervalSchedule(every=every, period=period).cron() for every, period in intervals],
        "east": CrontabSchedule(minute="5", hour="1,23", timezone="Etc/GMT-3").cron(),
        "days": CrontabSchedule(minute="5", hour="1", day_of_week="1", timezone="Etc/GMT-3").cron(),
        "same": CrontabSchedule(minute="5", hour="1", day_of_week="1").cron(),
        "left": PeriodicTask.objects.count(),
    }


class Plugin:
    name = "Periodic"
    actions = [{"id": "main", "label": "Begin"}, {"id": "now", "label": "Now"}, {"id": "end", "label": "End"},
               {"id": "soon", "label": "Soon"}, {"id": "edges", "label": "Edges"}]

    def run(self, action, params, context):
        if action == "now":
            return {"status": "ok", "made": touch.delay("Touched").get(timeout=60)}
        if action == "end":
            PeriodicTask.objects.filter(name="periodic touch").delete()
            return {"status": "ok", "left": PeriodicTask.objects.count()}
        if action == "soon":
            every, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.MINUTES)
            members = {"task": "periodic.touch", "interval": every, "crontab": None, "args": json.dumps(["By schedule"])}
            PeriodicTask.objects.update_or_create(name="periodic touch", defaults=members)
            return {"status": "ok", "schedules": context["schedule"].list()}
        if action == "edges":
            return {"status": "ok", **edges()}
        hourly, _ = IntervalSchedule.objects.get_or_create(every=2, period=IntervalSchedule.HOURS)
        nightly, _ = CrontabSchedule.objects.get_or_create(minute="30", hour="4", timezone="UTC")
        members = {"task": "periodic.touch", "interval": hourly, "args": json.dumps(["By schedule"])}
        PeriodicTask.objects.update_or_create(name="periodic touch", defaults=members)
        task, created = PeriodicTask.objects.update_or_create(
            name="periodic touch", defaults={"interval": None, "crontab": nightly, "enabled": True}
        )
        return {"status": "ok", "created": created, "cron": str(task.crontab), "schedules": context["schedule"].list()}

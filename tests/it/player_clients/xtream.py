"""Loads everything from a panel with pyxtream and prints it as JSON in the last line.

Arguments: address, user name, password, folder for its files.
"""

import json
import sys

from pyxtream.pyxtream import XTream

address, username, password, folder = sys.argv[1:]
panel = XTream("test", username, password, address, cache_path=folder, reload_time_sec=-1, validate_json=True)
loaded = panel.load_iptv()
result = {
    "authenticated": panel.state["authenticated"],
    "loaded": bool(loaded),
    "groups": [[group.name, group.group_id] for group in panel.groups if group.group_id != 9999],
    "channels": [
        [channel.name, channel.group_title, channel.epg_channel_id, channel.is_adult, channel.url, channel.logo]
        for channel in panel.channels
    ],
    "movies": [[movie.name, movie.group_title, movie.url] for movie in panel.movies],
    "series": [series.name for series in panel.series],
}
if panel.state["authenticated"]:
    stream = panel.channels[0].id
    result["short_guide"] = panel.liveEpgByStreamAndLimit(stream, 4)
    result["guide"] = panel.allLiveEpgByStream(stream)
print()
print(json.dumps(result))

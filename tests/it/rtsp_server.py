"""Serves a file by RTSP at /news: `rtsp_server.py PORT FILE`."""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer

Gst.init(None)
port, path = sys.argv[1:]
server = GstRtspServer.RTSPServer()
server.set_service(port)
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f"( filesrc location={path} ! qtdemux ! queue ! rtph264pay name=pay0 pt=96 config-interval=1 )"
)
server.get_mount_points().add_factory("/news", factory)
server.attach(None)
GLib.MainLoop().run()

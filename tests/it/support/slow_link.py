"""Makes the device that is named by the first argument, and returns each packet that is routed into it later, or not at all.

Arguments: the name, the delay in milliseconds, and how many of a hundred packets are lost. Prints a line once it works.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES_MAX = 65536
PACKETS_MAX = 10_000

name, delay, percent_lost = sys.argv[1], int(sys.argv[2]) / 1000, int(sys.argv[3])
tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
subprocess.run(["ip", "link", "set", name, "up"], check=True)
# What comes back has the addresses of other devices.
for key, value in [("rp_filter", "0"), ("accept_local", "1")]:
    for scope in ["all", name]:
        with open(f"/proc/sys/net/ipv4/conf/{scope}/{key}", "w") as file:
            file.write(value)
print("ready", flush=True)

chance = random.Random(1)
waiting = []
n_packets = 0
while True:
    wait = max(0, waiting[0][0] - time.monotonic()) if waiting else None
    readable, _, _ = select.select([tun], [], [], wait)
    now = time.monotonic()
    if readable:
        packet = os.read(tun, PACKET_BYTES_MAX)
        if chance.randrange(100) >= percent_lost and len(waiting) < PACKETS_MAX:
            n_packets += 1
            heapq.heappush(waiting, (now + delay, n_packets, packet))
    while waiting and waiting[0][0] <= now:
        os.write(tun, heapq.heappop(waiting)[2])

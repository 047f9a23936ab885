"""Unpacks the bundled wheels of a plugin: wheels.py FOLDER_OF_WHEELS TARGET ALLOWED REQUIREMENT…

ALLOWED is a list of requirements as JSON, which an admin allows to be fetched. Only the standard library of Python 3.10 is
used, and no network. Prints one sentence and ends with status 1 if another package is missing; prints the allowed ones that
are missing as JSON, and ends with status 3, if there are any.
"""

import importlib.metadata
import json
import os
import platform
import re
import sys
import zipfile
from pathlib import Path

BYTES_MAX = 1 << 30
FILES_MAX = 50_000


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def fits(path):
    """Returns whether this Python can use a wheel, by the tags in its name."""
    parts = path.stem.split("-")
    if len(parts) < 5:
        return False
    python, abi, machine = (it.split(".") for it in parts[-3:])
    version = sys.version_info
    own = f"cp{version[0]}{version[1]}"
    older = {f"cp3{minor}" for minor in range(2, version[1] + 1)}
    is_python = any(it in ("py3", f"py{version[0]}{version[1]}", own) for it in python)
    is_stable = "abi3" in abi and any(it in older for it in python)
    is_abi = any(it in ("none", own) for it in abi)
    libc = "musl" if not platform.libc_ver()[0] else "many"
    is_machine = any(
        it == "any" or it == f"linux_{platform.machine()}" or (it.startswith(libc) and it.endswith(platform.machine()))
        for it in machine
    )
    return ((is_python and is_abi) or is_stable) and is_machine


def unpack(path, target):
    with zipfile.ZipFile(path) as wheel:
        entries = wheel.infolist()
        if len(entries) > FILES_MAX or sum(it.file_size for it in entries) > BYTES_MAX:
            fail(f"{path.name} is too large")
        for entry in entries:
            name = entry.filename
            parts = name.split("/")
            if len(parts) > 2 and parts[0].endswith(".data"):
                if parts[1] not in ("purelib", "platlib"):
                    continue
                parts = parts[2:]
            place = target.joinpath(*parts)
            if ".." in parts or name.startswith("/") or "\\" in name or not place.is_relative_to(target):
                fail(f"{path.name} contains the unsafe name {name!r}")
            if entry.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            # In pieces, of at most the declared size.
            left = entry.file_size
            with wheel.open(entry) as source, open(place, "wb") as file:
                while piece := source.read(1 << 20):
                    left -= len(piece)
                    if left < 0:
                        fail(f"{path.name} is larger than it says")
                    file.write(piece)


def fail(text):
    print(text)
    sys.stdout.flush()
    os._exit(1)


def main():
    folder, target, allowed, requirements = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]
    wheels = sorted(it for it in folder.glob("*.whl") if fits(it)) if folder.is_dir() else []
    bundled = {normal(it.name.split("-")[0]) for it in wheels}
    missing = []
    for requirement in requirements:
        name = normal(re.match(r"\s*([A-Za-z0-9._-]*)", requirement)[1])
        if name in bundled:
            continue
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(requirement)
    refused = [it for it in missing if it not in allowed]
    if refused:
        fail(
            f"these Python packages are neither in the plugin's folder wheels nor on this machine: {', '.join(refused)}"
        )
    for wheel in wheels:
        try:
            unpack(wheel, target)
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            fail(f"{wheel.name} cannot be unpacked: {error}")
    if missing:
        print(json.dumps(missing))
        sys.stdout.flush()
        os._exit(3)


main()

"""Installs packages from an index: fetch.py FOLDER_OF_WHEELS TARGET REQUIREMENT…

Runs pip, which came with Python, with wheels only: nothing that is fetched is run. Prints one sentence at the end if it fails.
"""

import glob
import importlib.util
import os
import runpy
import sys


def pip_wheels():
    try:
        import ensurepip

        yield from glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
    except ImportError:
        pass
    yield from glob.glob("/usr/share/python-wheels/pip-*.whl")


def main():
    wheels, target, *requirements = sys.argv[1:]
    if importlib.util.find_spec("pip") is None:
        found = next(pip_wheels(), None)
        if found is None:
            print("pip is missing: install python3-pip or python3-venv")
            sys.exit(1)
        sys.path.insert(0, found)
    options = ["--only-binary", ":all:", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--no-color"]
    options += ["--no-warn-script-location", "--no-compile", "--quiet", "--upgrade", "--target", target]
    if os.path.isdir(wheels):
        options += ["--find-links", wheels]
    sys.argv = ["pip", "install", *options, "--", *requirements]
    os.dup2(1, 2)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The service units as systemd reads them: no line that it does not know, and little that a service
could do beyond its work. Exit 77: there is no systemd here.

usage: units.py BUILD_DIR
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# what keeps a service from the network that its socket families are for
CUTS = {"PrivateNetwork": ("yes",), "IPAddressDeny": ("any",), "SocketBindDeny": ("any", "ipv4", "ipv6"),
        "RestrictNetworkInterfaces": None}
EXPOSURE_MAX = {"sarissa-dataplane.service": 2.5, "sarissa-control.service": 1.0}


def analyze(*argv):
    done = subprocess.run(["systemd-analyze", "--no-pager", *map(str, argv)], capture_output=True,
                          text=True)
    return done.returncode, done.stdout + done.stderr


def cut_off(name, text):
    """A unit that may open IP sockets, and whose packets the manager drops: kernel sockets of
    --port udp pass the cgroup's filters, AF_XDP and cards do not."""
    settings = re.findall(r"^(\w+)=(.*)$", text, flags=re.M)
    families = {word for key, value in settings if key == "RestrictAddressFamilies"
                for word in value.split()}
    if not families & {"AF_INET", "AF_INET6"}:
        return
    for key, value in settings:
        if key in CUTS and (CUTS[key] is None or set(value.split()) & set(CUTS[key])):
            yield f"{name}: it has {' '.join(sorted(families))}, and {key}={value}"


def offences(build, folder):
    for name, limit in EXPOSURE_MAX.items():
        text = (build / "scripts/systemd" / name).read_text()
        # the programs need not be installed to read the rest
        path = folder / name
        path.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.M))
    for name, limit in EXPOSURE_MAX.items():
        status, text = analyze("verify", "--man=no", "--recursive-errors=no", folder / name)
        if status or text.strip():
            yield f"{name}: {text.strip()}"
        status, text = analyze("security", "--offline=true", f"--threshold={int(limit * 10)}",
                               folder / name)
        if status:
            yield f"{name}: more exposed than {limit}:\n" + "\n".join(
                line for line in text.splitlines() if not line.startswith("✓"))


def main():
    build = Path(sys.argv[1])
    cut = [line for name in EXPOSURE_MAX
           for line in cut_off(name, (build / "scripts/systemd" / name).read_text())]
    if cut:
        print("\n".join(cut))
        return 1
    if not shutil.which("systemd-analyze"):
        print("skip: no systemd-analyze on this machine")
        return 77
    if "--offline" not in analyze("--help")[1]:
        print("skip: this systemd-analyze cannot read units offline (systemd 250 can)")
        return 77
    with tempfile.TemporaryDirectory(prefix="sarissa-units-") as folder:
        found = list(offences(build, Path(folder)))
    print("\n".join(found) if found else "the units hold")
    return 1 if found else 0


sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""Our tc programs on a device: attach, configure, read, detach. By tc and bpftool."""

import json
import struct

from lib.shell import Failure, build_dir, run


def attach(netns, device, hook, pref, object_name, section):
    """Loads a program with maps of its own; returns its id."""
    path = build_dir() / "ebpf" / object_name
    if not path.exists():
        raise Failure(f"{path} is not there: run scripts/setup")
    run("tc", "-n", netns, "filter", "add", "dev", device, hook, "pref", pref, "bpf", "da",
        "obj", path, "sec", section)
    return program_id(netns, device, hook, pref)


def detach(netns, device, hook, pref):
    run("tc", "-n", netns, "filter", "del", "dev", device, hook, "pref", pref)


def program_id(netns, device, hook, pref):
    """The id of the program at that place, or None."""
    text = run("tc", "-n", netns, "-j", "filter", "show", "dev", device, hook)
    for entry in json.loads(text or "[]"):
        if entry.get("pref") == pref and "prog" in entry.get("options", {}):
            return entry["options"]["prog"]["id"]
    return None


def map_id(program, name):
    maps = json.loads(run("bpftool", "-j", "prog", "show", "id", program))["map_ids"]
    for one in maps:
        if json.loads(run("bpftool", "-j", "map", "show", "id", one))["name"] == name:
            return one
    raise Failure(f"program {program} has no map '{name}': run scripts/setup to build it again")


def write(program, map_name, words):
    """Element 0 of an array of u32 words."""
    value = [str(b) for b in struct.pack(f"={len(words)}I", *words)]
    run("bpftool", "map", "update", "id", map_id(program, map_name),
        "key", "0", "0", "0", "0", "value", *value)


def read(program, map_name, format):
    """Element 0, unpacked."""
    out = json.loads(run("bpftool", "-j", "map", "lookup", "id", map_id(program, map_name),
                         "key", "0", "0", "0", "0"))
    return struct.unpack(format, bytes(int(b, 16) for b in out["value"]))

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What an operator or a client does wrong gets one clear line and an exit status."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import netlib
from netlib import Cluster, nodes

MIB = 1 << 20
NOBODY = 65534
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
ON_NODES = list(Path("/sys/devices/system/node").glob("node*/hugepages/hugepages-2048kB/free_*"))
FREE, RESERVED = POOL.with_name("free_hugepages"), POOL.with_name("resv_hugepages")


def one_line(done, *words):
    """Failed, with one line on stderr that holds the words."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode != 0, f"exit 0: {done.stdout}"
    assert done.returncode > 0, f"killed by signal {-done.returncode}"
    text = lines[-1] if lines else ""
    missing = [w for w in words if w.lower() not in text.lower()]
    assert lines and not missing, f"'{text}' does not speak of {missing}"
    assert ": " in text, f"'{text}' does not say what to do"
    return done.returncode


def daemon(kind, *argv, wrapper=(), program=None):
    return subprocess.run([str(a) for a in (*wrapper, program or nodes.binary(kind), *argv)],
                          capture_output=True, text=True, timeout=30)


def begun(kind, *argv):
    return subprocess.Popen([str(a) for a in (nodes.binary(kind), *argv)], stderr=subprocess.PIPE, text=True)


def fill(folder):
    try:
        (folder / "all of it").write_bytes(bytes(128 << 20))
    except OSError:
        pass


def dataplane_that_cannot_start():
    netlib.need_daemons()
    with netlib.scratch() as directory:
        common = ("--rundir", directory, "--addr", "10.77.0.1/16", "--udp-port", "7400", "--mtu",
                  "1500", "--store", "16", "--workers", "1")
        one_line(daemon("dataplane", *common, "--port", "af_xdp:nope0"), "nope0")
        one_line(daemon("dataplane", *common, "--port", "warp:eth0"), "warp")
        assert one_line(daemon("dataplane", *common, "-xy"), "-xy") == 2
        for wrong in (("--no-such-flag",), (*common, "--port", "ring:r", "--vlan", "4095"),
                      (*common, "--port", "af_xdp:lo", "--vlan", "7"),
                      (*common, "--port", "ring:r", "--descriptors", "512"),
                      (*common, "--port", "vdev:net_ring0", "--descriptors", "63"),
                      ("--rundir", directory, "--addr", "10.255.255.1"),
                      (*common, "--port", "ring:r", "--rundir", ""),
                      (*common, "--port", "ring:r", "--addr", "0.0.0.0/8"),
                      (*common, "--port", "ring:r", "--addr", "ff02::1/64")):
            assert one_line(daemon("dataplane", *wrong)) == 2, wrong
        for words, ports in (("device", ("tap:t0", "--addr", "127.0.0.8", "tap:t0", "--addr", "127.0.0.9")), ("device", ("af_xdp:lo,copy", "udp:lo")),
                             ("address", ("udp:127.0.0.1", "ring:r", "--addr", "127.0.0.1")),
                             ("--addr is missing", ("udp:127.0.0.1", "ring:r")),
                             ("at most 8", [f"udp:127.0.0.{i}" for i in range(1, 10)])):
            argv = [w for p in ports for w in (("--port", p) if ":" in p else (p,))]
            done = daemon("dataplane", "--rundir", directory, *argv)
            assert one_line(done, words) == 2, ports
        for words, wrong in (("core 1023", ("--port", "ring:r", "--cores", "1023")),
                             ("memory", ("--port", "ring:r", "--store", 4 << 20)),
                             ("address", ("--port", "pci:nonsense")),
                             ("no such card", ("--port", "pci:ffff:1f:1f.7")),
                             ("dpdk-devbind", ("--port", "pci:1f:1f.7,rx=1")),
                             ("MTU", ("--port", "tap:t0", "--mtu", 9000))):
            assert one_line(daemon("dataplane", *common, *wrong), words) == 1, wrong
        one_line(daemon("dataplane", *common, "--port", "ring:r",
                        wrapper=("prlimit", "--fsize=1000")), "File too large")
        directory.chmod(0o755)
        own = directory / "own"
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        wrapper = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups")
        program = "dataplane/sarissa-dataplane"
        netlib.copy_build(directory / "build", program)
        one_line(daemon("dataplane", "--rundir", own, *common[2:], "--port", "af_xdp:lo",
                        wrapper=wrapper, program=directory / "build" / program), "as root")


def control_that_cannot_start():
    netlib.need_daemons()
    with netlib.scratch() as directory:
        assert one_line(daemon("control", "--no-such-flag")) == 2
        assert one_line(daemon("control", "--node", 0, "-xy"), "-xy") == 2
        assert one_line(daemon("control", "--rundir", "", "--node", "0",
                               "--nodes", "10.77.0.1:7400")) == 2
        assert one_line(daemon("control", "--rundir", directory, "--node", "0",
                               "--nodes", "not-an-address")) == 2
        assert one_line(daemon("control", "--rundir", directory, "--node", "5",
                               "--nodes", "10.77.0.1:7400")) == 2
        nodes_file = directory / "nodes"
        nodes_file.write_text("# " + 300 * "a comment " + "\n")  # longer than any buffer of a line
        for words, path in (("directory", directory), ("No such file", directory / "missing"),
                            ("names no node", nodes_file)):
            assert one_line(daemon("control", "--rundir", directory, "--nodes-file", path),
                            words) == 2, path


def a_run_directory_has_one_limit():
    """What one of the two daemons takes, the other one takes; no flag of these comes after it."""
    netlib.need_daemons()
    for kind in ("control", "dataplane"):
        for length in (79, 80):
            path = "/" + (length - 1) * "x"
            done = daemon(kind, "--rundir", path, "--no-such-flag")
            assert one_line(done) == 2 and (path in done.stderr) == (length == 80), done


def a_run_directory_that_is_full():
    """Control works without its counters and its file of leases; a dataplane says so and ends."""
    netlib.need_daemons()
    common = ("--port", "ring:r", "--addr", "10.77.0.1/16", "--store", "16")
    with netlib.scratch() as directory, netlib.scratch() as full, contextlib.ExitStack() as ends:
        for folder, size in ((directory, "size=64m"), (full, "size=64k")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", folder], check=True)
            ends.callback(subprocess.run, ["umount", "-l", folder], check=True)
        fill(full)
        one_line(daemon("dataplane", "--rundir", full, *common), "space")
        attached = begun("dataplane", "--rundir", directory, *common)
        ends.callback(attached.kill)
        assert any("ready on" in line for line in attached.stderr), "it has ended"
        fill(directory)
        control = begun("control", "--rundir", directory, "--nodes", "10.77.0.1")
        ends.callback(control.kill)
        said = []
        for line in control.stderr:
            said.append(line)
            if "this is node 0" in line:
                break
        for lacking in ("leases end", "no counters"):
            assert any(lacking in line and "space" in line for line in said), said
        control.terminate()
        assert control.wait(netlib.PATIENCE_S) == 0, control.stderr.read()


def command_without_a_node():
    netlib.need_daemons()
    env = {"SARISSA_SOCKET": "/nonexistent/control.sock", "PATH": "/usr/bin"}
    done = subprocess.run([nodes.binary("cli"), "ls"], capture_output=True, text=True, env=env)
    assert one_line(done, "/nonexistent/control.sock") == 6
    done = subprocess.run([nodes.binary("cli"), "warp"], capture_output=True, text=True, env=env)
    assert one_line(done) == 2


def shapes_that_are_none():
    """Each is answered with what that shape takes, wherever a shape is given."""
    shapes = {"flat:N takes": ("flat:", "flat:x", "flat:1", "flat:1025", "flat:-2", "flat:4x", "flat:3,4"),
              "bcube:N,K takes": ("bcube:3", "bcube:3,x", "bcube:1,1", "bcube:,", "bcube:3,8"),
              "torus:AxBxC takes": ("torus:", "torus:2x", "torus:axb", "torus:1x2"),
              "fattree:K takes": ("fattree:", "fattree:3", "fattree:18", "fattree:k"),
              "no such shape": ("ball:3", "ring:", ":", "Flat:3")}
    for words, wrong in shapes.items():
        for shape in wrong:
            for command in (("topology", shape), ("plan", "--op", "allreduce", "--topology", shape)):
                done = subprocess.run([nodes.binary("cli"), *command], capture_output=True, text=True, timeout=30)
                assert one_line(done, words) == 2, (command, done.stderr)
    done = subprocess.run([nodes.binary("cli"), "plan", "--topology", "missing.yaml"], capture_output=True, text=True)
    assert one_line(done, "missing.yaml", "name a topology file") == 1, done.stderr
    done = daemon("control", "--nodes", "127.0.0.1:7400", "--topology", "flat:4")
    assert one_line(done, "flat:4", "name a topology file") == 2, done.stderr


def unknown_objects_and_a_full_store():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        begin = time.monotonic()
        assert one_line(cluster.run(1, "sarissa", "get", "nope", directory / "out",
                                    "--timeout", 1)) == 3
        assert 0.9 < time.monotonic() - begin < 15, "a timeout of 1 s"
        assert one_line(cluster.run(1, "sarissa", "stat", "nope")) == 4
        netlib.make_file(directory / "big", 40 * MIB)
        netlib.make_file(directory / "oversize", 80 * MIB)
        cluster.must(0, "sarissa", "put", "first", directory / "big")
        assert one_line(cluster.run(0, "sarissa", "put", "second", directory / "big"),
                        "full") == 1
        assert one_line(cluster.run(0, "sarissa", "put", "third", directory / "oversize")) == 1
        cluster.must(0, "sarissa", "put", "first", directory / "big")  # the same bytes again
        netlib.make_file(directory / "other", 40 * MIB)
        assert one_line(cluster.run(0, "sarissa", "put", "first", directory / "other"),
                        "other bytes") == 1
        assert one_line(cluster.run(1, "sarissa", "put", "first", directory / "oversize"),
                        "bytes") == 1
        cluster.must(0, "sarissa", "rm", "first")
        cluster.must(0, "sarissa", "put", "second", directory / "big")
        cluster.check_daemons()


@contextlib.contextmanager
def huge_pages():
    """What is in the pool afterwards is what was there before."""
    if not POOL.exists():
        raise netlib.Skip("this kernel has no 2 MiB pages at all: every other test shows it")
    had = POOL.read_text()
    try:
        yield
    finally:
        POOL.write_text(had)


def leave_free(pages):
    pool, free, reserved = (int(path.read_text()) for path in (POOL, FREE, RESERVED))
    POOL.write_text(str(pool - free + reserved + pages))
    if int(FREE.read_text()) - int(RESERVED.read_text()) != pages:
        raise netlib.Skip("huge pages come and go: others use them")


def ordinary_pages_do_where_huge_ones_are_missing():
    netlib.need_daemons()
    with huge_pages():
        leave_free(0)
        with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
            netlib.transfer(cluster, directory, 5 * MIB)


def open_when_read(fifo):
    """For writing, when somebody has opened it for reading."""
    opened = []

    def is_read():
        with contextlib.suppress(OSError):
            opened.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        return opened

    netlib.wait_for(is_read, netlib.PATIENCE_S, "the free huge pages are looked at")
    return opened[0]


def start_while_others_take_all_but(pages, directory):
    """Its first look at the free pages is a pipe, which tells of many when they are gone. DPDK
    counts on each memory node, where those that others have reserved count as free."""
    fifo, left, rundir = directory / "free", directory / "left", directory / "run"
    rundir.mkdir()
    os.mkfifo(fifo)
    left.write_text(f"{pages}\n")
    mounts = [f"mount --bind {fifo} {FREE}", *(f"mount --bind {left} {path}" for path in ON_NODES)]
    command = [nodes.binary("dataplane"), "--rundir", rundir, "--addr", "10.77.0.1/16",
               "--udp-port", 7400, "--store", 16, "--port", "ring:r", "--log-level", "info"]
    child = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", "; ".join([*mounts, 'exec "$@"']), "sh",
         *map(str, command)], stderr=subprocess.PIPE, text=True)
    try:
        told = open_when_read(fifo)
        subprocess.run(["nsenter", "--mount", "--target", str(child.pid), "umount", "--lazy", FREE],
                       check=True)
        try:
            leave_free(pages)
        finally:
            os.write(told, b"100000\n")
            os.close(told)
        netlib.wait_for(lambda: child.poll() is not None or
                        nodes.is_listening(rundir / "dataplane.sock", "self"),
                        netlib.PATIENCE_S, "the dataplane listens")
    finally:
        child.terminate()
        errors = child.communicate()[1]
    assert "starting over in ordinary ones" in errors, f"{pages} left: {errors}"
    assert "ready on" in errors, f"{pages} left: {errors}"


def ordinary_pages_do_where_others_take_the_huge_ones_first():
    """Between our look at them and DPDK's, which says one thing when few are left, and another when
    there are none."""
    netlib.need_daemons()
    for pages in (0, 1):
        with huge_pages(), netlib.scratch() as directory:
            start_while_others_take_all_but(pages, directory)


netlib.run(dataplane_that_cannot_start, control_that_cannot_start, a_run_directory_has_one_limit,
           a_run_directory_that_is_full,
           command_without_a_node, shapes_that_are_none, unknown_objects_and_a_full_store,
           ordinary_pages_do_where_huge_ones_are_missing,
           ordinary_pages_do_where_others_take_the_huge_ones_first)

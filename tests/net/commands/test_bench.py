#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The measuring tools: their figures hold together, their limits are kept, nothing stays behind."""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from pathlib import Path

import netlib
from lib.bench import compare as bench_compare, ops, options as bench_options  # noqa: E402
from lib.bench import reduce as bench_reduce, sum as bench_sum, wakeups  # noqa: E402
from lib.bench.systems import gloo as bench_gloo  # noqa: E402
from lib.bench.systems import peer  # noqa: E402
from lib.bench.tables import cases as bench_cases  # noqa: E402
from lib.cluster import process  # noqa: E402
from lib.shell import Failure  # noqa: E402

BENCH = netlib.ROOT / "scripts/bench"
MIB = 1 << 20


def bench(*argv, **options):
    options = {"capture_output": True, "text": True, "timeout": 300} | options
    return subprocess.run([str(a) for a in (BENCH, *argv)], **options)


def rows_of(*argv, **options):
    done = bench(*argv, "--json", **options)
    assert done.returncode == 0, netlib.tail(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def nothing_stays(pid):
    name = f"bench{pid}"
    assert not netlib.network.namespaces(name), f"{name} still has namespaces"
    assert not netlib.state.exists(name), f"{name} still has a run directory"


def look_ups_are_timed_beside_tcp():
    netlib.need_root()
    def middles():
        """By case."""
        rows, table = rows_of("lookup", "--count", 100, "--repeat", 2)
        cases = {row["case"] for row in rows}
        assert len(rows) == 2 * len(cases) == 12, f"{len(rows)} rows of {cases}"
        for row in rows:
            assert row["count"] == 100, row
            assert 0 < row["min_ns"] <= row["median_ns"] <= row["p99_ns"] <= row["max_ns"], row
        assert "from control to control" in table
        return {case: statistics.median(row["median_ns"] for row in rows if row["case"] == case) for case in cases}

    def right(middle):
        return middle["look-up, directory here"] < middle["look-up, directory there"]

    seen = netlib.measured(middles, right)
    assert right(seen[-1]), f"ns: {seen}"
    return ", ".join(f"{case} {ns / 1e3:.0f} us" for case, ns in seen[-1].items())


def staggered_receivers_are_distinguished():
    netlib.need_root()
    nodes, size, rate = 4, MIB, 100
    rows, table = rows_of("broadcast", "--nodes", nodes, "--size", size, "--rate", rate,
                          "--stagger", "0.25T", "--repeat", 1)
    row, alone = rows[0], size * 8 / (rate * 1e6)
    assert abs(row["stagger_ms"] - 250 * alone) < 1e-6, row
    assert row["blocked_seconds"][0] == 0, "whose object is put does not wait"
    assert row["put_seconds"]["0"] > 0, row
    for i in range(nodes - 1):
        arrival, end = row["arrival_seconds"][i], row["end_seconds"][i]
        assert abs(arrival - (i + 1) * 0.25 * alone) < 1e-9, row
        assert end - arrival > 0.98 * alone, f"receiver {i + 1} was faster than its link: {row}"
        late = (end - arrival - alone) / alone
        assert abs(row["late_shares"][i] - late) < 1e-3, row
        assert 0 < row["blocked_seconds"][i + 1] <= end - arrival + 1e-3, row
    assert abs(row["late_share"] - row["late_shares"][-1]) < 1e-3, row
    assert "blocked, s   sarissa" in table and "late, S/B    sarissa" in table, table


def a_bound_never_goes_back():
    """Who comes before an earlier one is done is measured against that one's bound, too."""
    for order, at in (("rising", [0, 500_000_000, 1_000_000_000]),
                      ("falling", [0, 1_000_000_000, 500_000_000])):
        args = bench_options.parse("broadcast", ["--nodes", "3", "--size", "1000000", "--rate", "8",
                                                 "--stagger", "500", "--order", order])
        assert ops.arrivals_ns(args) == at, order
        first, second = (1, 2) if order == "rising" else (2, 1)
        told = ops.receivers(args, {first: [[0, 1_600_000_000]],
                                          second: [[0, 2_500_000_000]]}, 0, at)
        assert told["late_shares"] == [0.1, 0.5][::second - first], told
        assert told["arrival_seconds"] == [0.5, 1.0][::second - first], told
    blocked = ops.blocked_seconds({1: [[5, 2_000_000_005]]}, 2)
    assert blocked == [0.0, 2.0], blocked


def what_ran_is_told_from_a_trace():
    """Only what lies between start and end; who was preempted and goes on was not woken."""
    def switch(at, prev, state, following):
        (one, pid), (other, next_pid) = prev, following
        return (f" {one}-{pid} [000] d..2. 1.{at:06}: sched_switch: prev_comm={one} prev_pid={pid} "
                f"prev_prio=120 prev_state={state} ==> next_comm={other} next_pid={next_pid} "
                "next_prio=120")

    idle, task, worker = ("swapper/0", 0), ("task", 7), ("rte-worker-1", 8)
    lines = ["# tracer: nop", switch(90, idle, "R", worker), switch(100, worker, "S", task),
             " task-7 [000] ..s1. 1.000120: softirq_entry: vec=3 [action=NET_RX]",
             " task-7 [000] ..s1. 1.000130: softirq_exit: vec=3 [action=NET_RX]",
             switch(150, task, "R+", worker), switch(170, worker, "S", task),
             switch(190, task, "S", idle)]
    told = wakeups.account(lines, 1_000_110_000, 1_000_200_000)
    assert told == {"task": (0, 60_000), "rte-worker": (1, 20_000), "idle": (0, 10_000),
                    "soft interrupts": (1, 10_000)}, told


def sums_are_found_without_the_systems():
    """What a program adds up from the seeds alone; that ours and the others' are equal to it, the
    measurements themselves show."""
    told = bench_sum.sum_digest(20000, [3, 1, 2])
    assert told == bench_sum.sum_digest(20000, [1, 2, 3]), "the order of the seeds counts"
    others = [bench_sum.sum_digest(20000, seeds) for seeds in ([1, 2], [1, 2, 4], [1, 2, 2])]
    assert len({told, *others}) == 4 and len(told) == 16, (told, others)


def allreduces_over_several_ports_are_measured_and_checked():
    netlib.need_root()
    size = 400_000
    (row,), table = rows_of("hips", "--network", "bcube:2,1", "--size", size, "--rate", 100, "--repeat", 1, "--scheme",
                            "hips-ring")
    assert (row["scheme"], row["nodes"], row["rails"], row["bytes"]) == ("hips-ring", 4, 2, size), row
    assert abs(row["bound_seconds"] - 2 * 3 / 4 * size / (2 * 12.5e6)) < 1e-9 and row["ratio"] > 1, row
    assert "4 nodes with 2 ports" in table, table
    done = bench("hips", "--scheme", "none")
    assert done.returncode == 2 and done.stderr.startswith("bench: --scheme: 'none' is none: hips-mesh, "), done.stderr


def training_by_a_group_is_measured():
    netlib.need_root()
    def trained():
        (row,), table = rows_of("train", "--data", "synthetic", "--workers", 2, "--seconds", 2, "--repeat", 1, "--policy",
                                "asp", "--swap", 1, "bsp")
        return row, table

    def right(seen):
        row, table = seen
        accuracies = [accuracy for _, accuracy in row["curve"]]
        return (accuracies[-1] > accuracies[0] + 0.1 and row["steps"] > 10 and
                "the last that was seen under version 1" in table)

    seen = netlib.measured(trained, right)
    assert right(seen[-1]), seen
    done = bench("train", "--swap", "soon", "bsp")
    assert done.returncode == 2 and done.stderr.startswith("bench: --swap: 'soon'"), done.stderr


def reduces_are_measured_and_checked():
    netlib.need_root()
    size, rate = 400_000, 100
    for op, bound in (("reduce", 1), ("allreduce", 4 / 3)):
        (row,), table = rows_of(op, "--nodes", 3, "--size", size, "--rate", rate, "--repeat", 1)
        assert abs(row["bound_seconds"] - bound * size * 8 / (rate * 1e6)) < 1e-9, row
        assert row["ratio"] > 1 and abs(row["seconds"] / row["bound_seconds"] - row["ratio"]) < 1e-9
        blocked = row["blocked_seconds"]
        assert blocked[0] > 0 and all((b > 0) == (op == "allreduce") for b in blocked[1:]), row
        assert set(row["put_seconds"]) == {"0", "1", "2"}, row
    return f"allreduce {row['ratio']:.2f} x the bound"


def others_take_turns_and_are_checked():
    """Every other system really runs every operation that it has, in a run with ours."""
    netlib.need_root()
    for op, tunings in (("broadcast", 6), ("gather", 5), ("reduce", 6), ("allreduce", 7)):
        done = bench(op, "--nodes", 3, "--size", 400_000, "--rate", 200, "--repeat", 1,
                     "--system", "all", "--json", timeout=900)  # the first may install them
        if "has no package" in done.stderr or "'apt-get" in done.stderr:
            raise netlib.Skip(netlib.tail(done.stderr))
        assert done.returncode == 0, netlib.tail(done.stderr)
        rows, table = [json.loads(line) for line in done.stdout.splitlines()], done.stderr
        systems = {row["system"] for row in rows}
        assert systems == {"sarissa", "openmpi", "gloo", "dask"} and len(rows) == tunings, table
        for row in rows:  # nobody is faster than the link, and nobody moves fewer bytes than needed
            assert row["ratio"] > 1 and row["wire_bytes"] > 2 * 400_000, row


def a_peer_that_is_not_installed_is_named():
    """One line says what is missing, and what to do, whether it is the package or the network."""
    netlib.need_root()
    try:
        peer.install(["sarissa-nowhere"])
    except Failure as failure:
        told = str(failure)
        assert told.startswith("sarissa-nowhere cannot be installed: "), told
        assert "leave it out (--system)" in told and "\n" not in told, told
    else:
        raise AssertionError("a package that nobody has is installed")


def staggered_givers_do_not_wait():
    netlib.need_root()
    alone = 4 * MIB * 8 / 1e8

    def measure():
        (row,), _ = rows_of("reduce", "--nodes", 3, "--size", 4 * MIB, "--rate", 100, "--repeat", 1,
                            "--stagger", "0.5T", "--order", "falling")
        assert row["node_arrival_seconds"] == [int(k * row["stagger_ms"] * 1e6) / 1e9
                                               for k in (2, 1, 0)], row
        assert abs(row["bound_seconds"] - 2 * alone) < 1e-6, row
        assert row["seconds"] > row["node_arrival_seconds"][0], row
        return row

    def right(row):
        """Who gave when all gave together would wait 1.75 of it, on average."""
        return row["blocked_seconds"][0] > 0.8 * row["seconds"] and 0 < row["blocked_others_seconds"] < alone

    seen = netlib.measured(measure, right)
    assert right(seen[-1]), f"a giver waits for others: {seen}"


def a_killed_participant_is_replaced():
    netlib.need_root()
    rows, table = rows_of("reduce", "--nodes", 4, "--size", 2 * MIB, "--rate", 100, "--repeat", 2,
                          "--kill", 1)
    for row in rows:
        assert row["sources"] == [0, 2, 3] and row["killed"] == [1], row
        assert row["undisturbed_seconds"] > 2 * MIB * 8 / 1e8, row
        later = (row["seconds"] - row["undisturbed_seconds"]) / (2 * MIB * 8 / 1e8)
        assert abs(later - row["later_share"]) < 1e-3, row
    assert "S/B later" in table, table
    return f"{rows[-1]['seconds'] - rows[-1]['undisturbed_seconds']:.2f} s later"


def a_wrong_sum_ends_the_run():
    """The check of a system is not its own: with another expectation it fails."""
    class Told:
        def ask(self, verb, *_):
            return {"sources": [0, 1], "digests": [bench_sum.sum_digest(64, [1, 2])]}

    ours = bench_reduce.SarissaReduce.__new__(bench_reduce.SarissaReduce)
    ours.op, ours.turn, ours.size, ours.running, ours.count = "reduce", 1, 64, [0], 2
    ours.tasks, ours.clear = [Told(), Told()], lambda: None
    ours.verify()
    gloo = bench_gloo.Gloo.__new__(bench_gloo.Gloo)
    gloo.op, gloo.sum, gloo.tasks = "allreduce", bench_sum.sum_digest(64, [1, 2]), ours.tasks
    gloo.verify()
    ours.size = gloo.size = 128
    gloo.sum = bench_sum.sum_digest(128, [1, 2])
    for system in (ours, gloo):
        try:
            system.verify()
        except Failure:
            continue
        raise AssertionError(f"{system.system} takes a wrong sum")


def cases_say_which_limit_is_missed():
    case = bench_cases.Case("a/b", "broadcast", {"ratio": 1.07, "source_copies": 1.1})
    told = [bench_compare.verdict(case, numbers, ours) for numbers, ours in (
        ({"ratio": 1.06, "source_copies": 1.0, "cpu_share": 0.5}, True),
        ({"ratio": 1.08, "source_copies": 1.0, "cpu_share": 0.9}, True),
        ({"ratio": 9.0}, False))]
    assert told == ["met", "missed: ratio > 1.07 (cores full)", ""], told
    names = [one.name for one in bench_cases.CASES]
    assert len(set(names)) == len(names), "two cases have one name"
    for one in bench_cases.CASES:
        op, *argv = one.command.split()
        assert bench_options.parse(op, argv).op == op


def undisturbed(path):
    """As if nothing else had run on the machine, of which the test cannot be sure."""
    rows = [json.loads(line) | {"other_cpu_share": 0.0} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def compare_goes_on_where_it_was_interrupted():
    """Rows are there as soon as they are measured; the next run appends what is missing."""
    netlib.need_root()
    with tempfile.TemporaryDirectory(prefix="sarissa-test-") as directory:
        child = subprocess.Popen(
            [BENCH, "compare", "--only", "*/1k-on-4", "*/32m-on-4", "--system", "sarissa",
             "--repeat", "2", "--results", directory],
            stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL)
        try:
            for line in child.stderr:  # until the second case has begun
                if line.startswith("bench: broadcast/32m-on-4"):
                    break
            child.send_signal(signal.SIGINT)
            rest = child.stderr.read()
            assert child.wait(timeout=60) == 130, f"exit {child.returncode}: {netlib.tail(rest)}"
        finally:
            process.end(child.pid)
            child.wait()
        nothing_stays(child.pid)
        assert os.listdir(directory) == ["rows.jsonl"], f"{os.listdir(directory)}: {netlib.tail(rest)}"
        assert "broadcast/1k-on-4" in rest and "interrupted" in rest, rest
        path = Path(directory) / "rows.jsonl"
        before = undisturbed(path)
        assert [row["case"] for row in before] == ["broadcast/1k-on-4"] * 2, before
        again = ("compare", "--only", "broadcast/1k-*4", "--system", "sarissa", "--repeat", 3,
                 "--results", directory, "--resume")
        done = bench(*again)
        more = undisturbed(path)
        assert more[:2] == before and len(more) == 3, netlib.tail(done.stderr)
        assert all(row["commit"] and row["measured"] and row["machine"] for row in more), more
        table = json.loads(Path(directory, "compare.json").read_text())
        runs = [row["runs"] for row in table if row["label"].startswith("sarissa")]
        assert runs == [3], table  # published rows of peers, if they are of this machine, stand beside it
        done = bench(*again)
        assert "bench: broadcast" not in done.stderr and "1k-on-4" in done.stderr, done
        assert undisturbed(path) == more, "what is there is not measured again"


def another_file_in_place_of_rows_is_refused():
    with tempfile.TemporaryDirectory(prefix="sarissa-test-") as directory:
        path = Path(directory, "rows.jsonl")
        for text in ("<<<<<<< ours", "[1]", '{"case": "a"}'):
            path.write_text(text)
            done = bench("compare", "--show", "--results", directory)
            assert done.returncode == 1 and done.stderr.count("\n") == 1, (text, done)
            assert f"{path}, line 1, is no measured row" in done.stderr, (text, done)


def a_trace_that_cannot_begin_leaves_nothing():
    class Broken(wakeups.Wakeups):
        def write(self, name, value):
            assert self.at.exists()
            raise OSError("no memory")

    kept = wakeups.TRACING
    with tempfile.TemporaryDirectory(prefix="sarissa-test-") as directory:
        wakeups.TRACING = Path(directory)
        Path(directory, "instances").mkdir()
        try:
            with Broken():
                assert False, "it has begun"
        except OSError:
            assert not os.listdir(f"{directory}/instances")
        finally:
            wakeups.TRACING = kept


@contextlib.contextmanager
def locked_up_build():
    """What a bench runs, where others than root may not enter, as in a checkout below /root."""
    with netlib.scratch() as directory:
        assert directory.stat().st_mode & 0o077 == 0, f"{directory} is open to others"
        for part in ("bench/lookup", "client/libsarissa.so.0", "client/cli/sarissa",
                     "control/sarissa-control", "dataplane/sarissa-dataplane", "ebpf/port.bpf.o",
                     "ebpf/xdp_redirect.bpf.o"):
            (directory / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(netlib.build_dir() / part, directory / part)
        yield directory


def puts_are_timed_both_ways():
    """Also for one who may not enter the checkout: the client of another user is started as root."""
    netlib.need_root()
    with locked_up_build() as build:
        rows, table = rows_of("put", "--repeat", 1, env={**os.environ, "SARISSA_BUILD": str(build)})
    assert len(rows) == 8, f"{len(rows)} rows"
    for row in rows:
        assert row["case"] in table and row["caller_cpu_ns"] > 0 and row["turn_us"] > 0, row


def wrong_arguments_are_refused():
    netlib.need_root()
    for argv in (("compare", "--only", "nothing/*"), ("broadcast", "--stagger", "soon"),
                 ("broadcast", "--stagger", "-1"), ("gather", "--stagger", "1"),
                 ("reduce", "--size", "1001"), ("reduce", "--kill", "0"),
                 ("reduce", "--kill", "3"), ("reduce", "--kill", "1", "--at", "1"),
                 ("p2p", "--system", "gloo"), ("allreduce", "--tuning", "soon"),
                 ("reduce", "--stagger", "1", "--order", "odd"), ("lookup", "--count", "0"),
                 ("put", "--repeat", "0"), ("transfer", "--size", "0"), ("broadcast", "--size", "0"),
                 ("recovery", "--repeat", "0"), ("recovery", "--table"),
                 ("dataplane", "--workers", "99"), ("dataplane", "--mtu", "100"),
                 ("compare", "--repeat", "0"), ("compare", "--seconds", "0"),
                 ("compare", "--only", "*/1g-*"), ("compare", "--system", "horovod"), ("nothing",)):
        done = bench(*argv)
        assert done.returncode == 2 and done.stderr.startswith(("bench: ", "usage: ")), \
            f"{argv}: {done}"
    for op in ("transfer", "broadcast", "apps"):
        done = bench(op, "--vdev", "af_xdp", "--mtu", 3499)
        assert done.returncode == 2 and "--vdev udp" in done.stderr, f"{op}: {done}"


def large_frames_are_measured_over_udp():
    netlib.need_daemons()
    (row,), _ = rows_of("p2p", "--vdev", "udp", "--mtu", 9000, "--size", MIB, "--rate", 100, "--repeat", 1)
    assert (row["mtu"], row["vdev"]) == (9000, "udp") and row["ratio"] > 0.9, row


def what_the_memory_does_not_hold_is_refused():
    """All systems of a run at once, each with the most of its runs."""
    runs = [bench_options.parse(op, ["--size", str(1 << 30), "--system", "both", "--tuning", "hand"])
            for op in ("broadcast", "allreduce")]
    ops.check_memory(runs[:1], (8 + 12) << 30)
    ops.check_memory(runs, (16 + 12) << 30)
    try:
        ops.check_memory(runs, ((16 + 12) << 30) - 1)
    except Failure as why:
        assert "sarissa 16.0, openmpi hand 12.0 GiB" in str(why), why
    else:
        assert False, "28 GiB are held in less"
    assert 0 < ops.memory_free() < 1 << 50


def the_dataplane_is_measured_between_two_processes():
    netlib.need_root()
    rows, table = rows_of("dataplane", "--device", "memif", "vhost", "--mtu", 1500, "--mib", 1,
                          "--seconds", 0.1, "--no-testpmd")
    assert [row["device"] for row in rows] == ["memif", "vhost"], rows
    for row in rows:
        chunks = row["packets_per_s"] * row["seconds"]
        assert row["bytes"] >= MIB - row["chunk_bytes"] and row["resent_share"] < 1, row
        assert abs(chunks * row["chunk_bytes"] / row["bytes"] - 1) < 1e-6, row
        for stage, cycles in row["cycles_per_packet"].items():
            assert abs(cycles - row["send"][stage] - row["receive"][stage]) < 1e-6, (stage, row)
        assert row["send"]["seal"] > 0 < row["receive"]["check"], row
        assert row["memcpy_gbit_s"] > 0, row
    assert "memif" in table and "transmit" in table, table


def an_object_that_does_not_come_ends_the_run():
    done = bench("dataplane", "--device", "ring", "--mtu", 1500, "--patience", 0.0005, "--no-testpmd")
    assert done.returncode == 1 and "the object does not arrive" in done.stderr, done
    done = bench("dataplane", "--patience", 0)
    assert done.returncode == 2, done


netlib.run(look_ups_are_timed_beside_tcp, puts_are_timed_both_ways,
           staggered_receivers_are_distinguished, a_bound_never_goes_back,
           another_file_in_place_of_rows_is_refused, a_trace_that_cannot_begin_leaves_nothing,
           what_ran_is_told_from_a_trace, sums_are_found_without_the_systems,
           a_wrong_sum_ends_the_run,
           reduces_are_measured_and_checked, allreduces_over_several_ports_are_measured_and_checked,
           training_by_a_group_is_measured, others_take_turns_and_are_checked,
           a_peer_that_is_not_installed_is_named, staggered_givers_do_not_wait,
           a_killed_participant_is_replaced, cases_say_which_limit_is_missed,
           compare_goes_on_where_it_was_interrupted, wrong_arguments_are_refused,
           large_frames_are_measured_over_udp, what_the_memory_does_not_hold_is_refused,
           the_dataplane_is_measured_between_two_processes,
           an_object_that_does_not_come_ends_the_run)

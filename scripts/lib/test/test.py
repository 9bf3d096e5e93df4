# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the tests. Default: every suite but vm, as CI does.

  lint    rules of the source tree
  unit    each part alone, with address and undefined-behaviour sanitizers; then the client's parts
          without them, told as plain: Python and the count of system calls need that
  threads what several threads share in a client and in control, with the thread sanitizer
  count   instructions of the pure cores for work of known size, against those on record
  sim     both cores of many nodes in virtual time, with the sanitizers;
          with --seeds each scenario of the swarm over a range, without them
  fuzz    every fuzz target from its corpus, as many executions as tests/fuzz/runs.json says, or
          for --fuzz-seconds
  net     real processes in network namespaces (root)
  chaos   processes killed, cables pulled, packets lost under load, from a seed (root)
  daemons a part of net and chaos, the daemons with sanitizers, whose reports fail a test (root)
  engines Ray, PyTorch and Dask of today, where scripts/setup --engines has installed them (root)
  vm      network cards of emulated machines, with QEMU; only when it is named

Beside net, chaos and daemons, lint, count, sim and fuzz run on what the cores have left over, where the
kernel has such a priority (cgroup cpu.idle); the tests of net that measure the machine run last, alone.

Nodes of net, chaos and daemons speak over AF_XDP, or over what --vdev or SARISSA_VDEV names; a part of net and
chaos always runs over kernel UDP sockets as well (udp-...), and the tests of one kind of port over that.

A failed test is told at once, with the lines that say why, and once more before the last line.
The last line counts: N passed, N failed, N skipped. Passed and failed are tests, skipped are cases, each
in a line with the reason before the last one. A case that tests/skips does not list must not be skipped.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from lib import engines, options, shell  # noqa: E402
from lib.cluster import failure, process, state  # noqa: E402
from lib.shell import ROOT, Failure, say  # noqa: E402
from lib.test import aside, skips, sweep  # noqa: E402

SUITES = ("lint", "unit", "threads", "count", "sim", "fuzz", "net", "chaos", "daemons", "engines", "vm")
NAMED_ONLY = ("vm",)  # minutes
SANITIZED = ("unit", "sim")
PORTS = ("af_xdp", "udp")  # which all of net and chaos is known to pass over
CLUSTERS = ("net", "chaos", "daemons", "engines")
ASIDE = ("lint", "count", "sim", "fuzz")  # they compute, and nothing in them has a limit of time that counts
PATIENT = 20  # times as long may they take there
PLAIN = {"unit": "plain"}  # the part of a sanitized suite that runs in the plain build as well
# what the suite of that name runs, and what that loads
DAEMONS = ("dataplane/sarissa-dataplane", "control/sarissa-control", "ebpf/xdp_redirect.bpf.o")
CLEANUP_S = 60
SANITIZER_OPTIONS = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                     "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1"}


class Record:
    """In the place of a score: keeps all for the scripts/test that runs us aside."""

    def __init__(self, path):
        self.path, self.results = path, []

    def add(self, *result):
        self.results.append(result)

    def end(self, _):
        Path(self.path).write_text(json.dumps(self.results))
        return 0


class Score:
    def __init__(self):
        self.passed = self.failed = 0
        self.failures = []  # suite/test, and the lines that say why
        self.skips = skips.Skips()

    def add(self, suite, name, result, seconds, text=""):
        word = {"OK": "ok", "SKIP": "skip"}.get(result, "FAIL")
        if word == "ok":
            self.passed += 1
        elif word == "FAIL":
            self.failed += 1
        self.skips.add(suite, name, result, text)
        print(f"{word:<5}{suite}/{name} ({seconds:.1f} s)", flush=True)
        if word == "FAIL":
            self.failures.append((f"{suite}/{name}", failure.summary(text)))
            print("\n".join(f"     {line}" for line in [result, *failure.lines(text)]), flush=True)

    def end(self, patterns):
        """Prints the failed tests, the skipped cases and the counts: the exit status."""
        for name, why in self.failures:
            print("\n     ".join([f"FAIL {name}", *why]))
        names = self.skips.names()
        for name, why in names.items():
            print(f"skipped {name}: {why}")
        for name in (unlisted := skips.unlisted(names, patterns)):
            print(f"FAIL {name} must not be skipped: give it what it needs, or list it in tests/skips")
        print(f"{self.passed} passed, {self.failed} failed, {len(names)} skipped")
        return 1 if self.failed or unlisted else 0


# what a sanitizer's report needs of debug information; the rest costs a third of the time to compile
LINES_ONLY = ("-Ddebug=false", "-Dc_args=-g1")


def beside(what):
    """build-asan beside build, and so on."""
    return shell.build_dir().with_name(f"{shell.build_dir().name}-{what}")


def sanitized_build():
    """Warnings are for the ordinary builds: instrumented code has false ones."""
    return configure(beside("asan"), "-Db_sanitize=address,undefined", "-Doptimization=1",
                     "-Dwerror=false", "-Db_lundef=false", *LINES_ONLY)


def threads_build():
    return configure(beside("tsan"), "-Db_sanitize=thread", "-Doptimization=1", "-Dwerror=false",
                     "-Db_lundef=false", *LINES_ONLY)


def fuzz_build():
    return configure(beside("fuzz"), "-Dfuzz=true", *LINES_ONLY, env={**os.environ, "CC": "clang"})


def configure(build, *options, env=None):
    with one_at_a_time(build):
        known = (build / "build.ninja").exists()
        if not known:
            say(f"test: configuring {build.name}")
            done = subprocess.run(["meson", "setup", build, ROOT, *options], env=env,
                                  capture_output=True, text=True)
            if done.returncode:
                raise Failure(f"meson could not configure {build}:\n{done.stdout}{done.stderr}")
    if known:  # what it knows of its tests must not be older than the sources
        ninja(build, "build.ninja")
    return build


def ninja(build, *targets):
    if targets != ("build.ninja",):
        say(f"test: building {build.name}")
    with one_at_a_time(build):
        done = subprocess.run(["ninja", "-C", build, *targets], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"the build of {build.name} failed:\n{(done.stdout + done.stderr)[-6000:]}")


@contextlib.contextmanager
def one_at_a_time(build):
    """Two of ninja or meson would spoil each other's notes."""
    build.mkdir(exist_ok=True)
    with open(build / "scripts-test.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tests_of(build, suite):
    out = shell.run("meson", "introspect", "--tests", build)
    return [t for t in json.loads(out) if f"sarissa:{suite}" in t["suite"]]


def meson_test(*argv, env):
    """What it says. An interrupt ends the tests first: meson would give them half a second, and what
    they run takes longer to take away."""
    with subprocess.Popen(["meson", "test", *argv], text=True, env=env, start_new_session=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        try:
            return child.communicate()[0]
        except KeyboardInterrupt:
            tests = process.children(child.pid)
            child.kill()
            process.end_all(tests, CLEANUP_S)
            raise


def run_meson(suite, build, score, chosen=lambda test: True, patience=1):
    tests = [t for t in tests_of(build, suite) if chosen(t)]
    if not tests:
        score.add(suite, "none", "SKIP", 0, f"skip: suite {suite} has no tests yet")
        return
    targets = {part for t in tests for part in t["depends"]}
    ninja(build, *targets_by_id(build, targets))
    log = build / f"meson-logs/{suite}.json"
    log.unlink(missing_ok=True)
    # tests of net mostly wait: for links of a given rate, and for what is declared dead after seconds
    at_once = os.cpu_count() + (suite == "net")
    said = meson_test("-C", build, "--no-rebuild", "--logbase", suite, "--suite", suite, "--num-processes", str(at_once),
                      "--timeout-multiplier", str(patience), *[t["name"] for t in tests],
                      env={**os.environ, **SANITIZER_OPTIONS})
    lines = log.read_text().splitlines() if log.exists() else []
    results = [json.loads(line) for line in lines]
    for one in results:
        text = one.get("stdout", "") + "\n" + one.get("stderr", "")
        name = one["name"].split(" / ")[-1].removeprefix("sarissa:")
        score.add(suite, name, one["result"], one["duration"], text)
    if len(results) != len(tests):
        score.add(suite, "all", "FAIL", 0, f"{len(results)} of {len(tests)} tests reported\n"
                  f"{said[-4000:]}")


def targets_by_id(build, ids):
    """What ninja calls the files that tests depend on."""
    out = json.loads(shell.run("meson", "introspect", "--targets", build))
    return [os.path.relpath(name, build) for t in out if t["id"] in ids for name in t["filename"]]


def run_fuzz(score, seconds, patience=1):
    build = fuzz_build()
    targets = [Path(t["filename"][0]) for t in json.loads(
        shell.run("meson", "introspect", "--targets", build)) if t["name"].startswith("fuzz_")]
    if not targets:
        score.add("fuzz", "none", "SKIP", 0, "skip: suite fuzz has no targets yet")
        return
    ninja(build, *(os.path.relpath(target, build) for target in targets))
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each has one thread
        try:
            for told in pool.map(lambda target: run_fuzz_target(target, fuzz_bound(target, seconds), patience),
                                 sorted(targets)):
                score.add("fuzz", *told)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            shell.end_children()  # else they run until their time is over
            raise


def fuzz_bound(target, seconds):
    """How long it runs. Executions are the same number on a busy machine, seconds are not."""
    if seconds:
        return f"-max_total_time={seconds}"
    runs = json.loads((ROOT / "tests/fuzz/runs.json").read_text())
    name = target.name.removeprefix("fuzz_")
    if name not in runs:
        raise Failure(f"tests/fuzz/runs.json does not say how many executions of {name} are enough")
    return f"-runs={runs[name]}"


def run_fuzz_target(target, bound, patience):
    """Name, result, seconds, text. From the committed corpus, which stays as it is: finds go to a
    folder that is removed."""
    begin = time.monotonic()
    corpus = ROOT / "tests/fuzz/corpus" / target.name.removeprefix("fuzz_")
    with tempfile.TemporaryDirectory(prefix="sarissa-fuzz-") as scratch:
        done = subprocess.run(
            [target, bound, f"-artifact_prefix={ROOT}/", f"-timeout={10 * patience}",
             "-rss_limit_mb=2048", "-print_final_stats=1", scratch,
             *([corpus] if corpus.is_dir() else [])], capture_output=True, text=True)
    took = time.monotonic() - begin
    return target.name, "FAIL" if done.returncode else "OK", took, done.stderr


def parse():
    parser = options.Parser(prog="test", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=" ".join(SUITES))
    parser.add_argument("--fuzz-seconds", type=options.whole(1, 86400), metavar="S",
                        help="for each fuzz target (default: executions of tests/fuzz/runs.json)")
    parser.add_argument("--seconds", type=options.SECONDS, metavar="S",
                        help="of trouble in chaos (default: 30)")
    parser.add_argument("--seed", type=options.whole(0, (1 << 63) - 1), metavar="N",
                        help="of chaos; 0 draws one (default: 1)")
    parser.add_argument("--soak-seconds", type=options.SECONDS, metavar="S",
                        help="of mixed traffic in net, on each kind of port (default: 5)")
    parser.add_argument("--vdev", choices=PORTS, default=options.vdev(),
                        help="what carries packets in net, chaos and daemons (default: SARISSA_VDEV, or"
                        " af_xdp)")
    parser.add_argument("--seeds", metavar="A-B",
                        help="sim alone: each of them in each scenario, on all cores")
    parser.add_argument("--scenario", metavar="S", help="only this one, with --seeds")
    parser.add_argument("--results", help=options.SUPPRESS)  # a file for the scripts/test that runs this one aside
    parser.add_argument("--no-setup", action="store_true", help="packages are known to be there")
    args = parser.parse_args()
    unknown = set(args.suites) - set(SUITES)
    if unknown:
        parser.error(f"no suite '{unknown.pop()}': choose of {' '.join(SUITES)}")
    if (args.seeds and args.suites != ["sim"]) or (args.scenario and not args.seeds):
        parser.error("--seeds goes with the suite sim alone, --scenario with --seeds")
    args.wanted = sweep.seeds(args.seeds) if args.seeds else None
    if args.scenario:
        sweep.check_scenario(args.scenario)
    return args


def run_sweep(args):
    build = configure(shell.build_dir())
    ninja(build, "tests/sim/swarm")
    return 1 if sweep.run(build, args.wanted, args.scenario) else 0


def take_left_over_down():
    """Of tests that were killed, as meson does after its timeout, before they could do it."""
    for name in state.left_over():
        say(f"test: taking down cluster '{name}', whose owner was killed")
        subprocess.run([ROOT / "scripts/cluster", "down", "--name", name], capture_output=True)


def measures(test):
    """Whether nothing else may run beside it."""
    return not test["is_parallel"]


def run_suite(suite, args, score, chosen=lambda test: True):
    patience = PATIENT if args.results else 1
    if suite == "fuzz":
        run_fuzz(score, args.fuzz_seconds, patience)
    elif suite == "threads":
        run_meson(suite, threads_build(), score)
    elif suite == "engines" and not engines.is_there():
        score.add(suite, "all", "SKIP", 0, f"skip: no engines in {engines.folder()}: scripts/setup --engines")
    elif suite in SANITIZED:
        run_meson(suite, sanitized_build(), score, patience=patience)
        if suite in PLAIN:
            run_meson(PLAIN[suite], configure(shell.build_dir()), score)
    else:
        build = configure(shell.build_dir())
        clusters = suite in CLUSTERS
        if clusters:
            ninja(build)
            if suite == "daemons":
                ninja(sanitized_build(), *DAEMONS)
            take_left_over_down()
        run_meson(suite, build, score, chosen, patience)
        if clusters:
            take_left_over_down()


def main():
    args = parse()
    if not args.no_setup:
        shell.setup("--figures", *(["--vm"] if "vm" in args.suites else []))
    if args.seeds:
        return run_sweep(args)
    for option, name in (("seed", "CHAOS_SEED"), ("seconds", "CHAOS_SECONDS"),
                         ("soak_seconds", "SCENARIOS_SOAK")):
        if getattr(args, option) is not None:
            os.environ[name] = str(getattr(args, option))
    os.environ[options.VDEV_VARIABLE] = args.vdev
    score = Record(args.results) if args.results else Score()
    run_suites([suite for suite in SUITES if suite in (args.suites or set(SUITES) - set(NAMED_ONLY))], args, score)
    return score.end(skips.allowed())


def run_suites(suites, args, score):
    """In turn; or those that only compute aside, and what measures at the end."""
    computing = [suite for suite in suites if suite in ASIDE]
    steps = [(suite, lambda test: True) for suite in suites]
    if not computing or not set(suites) & set(CLUSTERS):
        return run_steps(steps, args, score)
    seconds = [] if args.fuzz_seconds is None else ["--fuzz-seconds", str(args.fuzz_seconds)]
    with aside.Aside([sys.executable, __file__, "--no-setup", *computing, *seconds]) as others:
        if not others.runs():
            return run_steps(steps, args, score)
        say(f"test: {', '.join(computing)} beside the others, on what the cores have left")
        rest = [suite for suite in suites if suite not in ASIDE]
        run_steps([(suite, lambda test, suite=suite: suite != "net" or not measures(test)) for suite in rest], args,
                  score)
        for result in others.results():
            score.add(*result)
    if "net" in rest:
        run_steps([("net", measures)], args, score)


def run_steps(steps, args, score):
    for suite, chosen in steps:
        try:
            run_suite(suite, args, score, chosen)
        except Failure as why:
            score.add(suite, "build", "FAIL", 0, str(why))


if __name__ == "__main__":
    shell.debian_tools_only()
    shutil.which("meson") or say("test: meson is not there yet; setup brings it")
    shell.main("test", main)

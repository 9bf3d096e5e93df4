# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of torch.distributed as processes, one on each node of a LocalCluster. Tests start them with the name of a
function of their own file, which runs in each rank and prints one line of JSON as its result.

A test file ends with `ranks.main(globals())`, which does nothing but in a rank."""

import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WAIT_S = 120


class Ranks:
    """The processes of one run."""

    def __init__(self, file, function, cluster, size=None, backend="sarissa", timeout=30.0, **arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.size = len(cluster) if size is None else size
        given = {"function": function, "store": str(Path(self.folder.name) / "store"), "size": self.size,
                 "backend": backend, "timeout": timeout, "arguments": arguments}
        self.processes = []
        for rank in range(self.size):
            environment = {**cluster.environment(rank % len(cluster)), "OMP_NUM_THREADS": "1"}
            self.processes.append(subprocess.Popen(
                [sys.executable, "-B", file, json.dumps({**given, "rank": rank})], env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    def line(self, rank):
        """The next one that a rank prints."""
        text = self.processes[rank].stdout.readline()
        assert text, f"rank {rank} has ended with {self.processes[rank].wait(WAIT_S)}"
        return json.loads(text)

    def say(self, rank, word="go"):
        self.processes[rank].stdin.write(word + "\n")
        self.processes[rank].stdin.flush()

    def results(self, killed=()):
        """What each rank has printed last; all must have ended well."""
        last = []
        for rank, process in enumerate(self.processes):
            out, _ = process.communicate(timeout=WAIT_S)
            assert rank in killed or process.returncode == 0, f"rank {rank} ended with {process.returncode}"
            last.append(json.loads(out.splitlines()[-1]) if out.strip() else None)
        self.folder.cleanup()
        return last

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
            process.stdin.close()


def run(file, function, cluster, **arguments):
    with Ranks(file, function, cluster, **arguments) as ranks:
        return ranks.results()


def tell(value):
    print(json.dumps(value), flush=True)


def hear():
    return sys.stdin.readline().strip()


def main(names):
    """In a rank: joins the group, and runs the function."""
    if names["__name__"] != "__main__":
        return
    import torch.distributed as dist
    given = json.loads(sys.argv[1])
    if given["backend"] == "sarissa":
        import sarissa.torch  # noqa: F401
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(given["backend"], init_method="file://" + given["store"], rank=given["rank"],
                            world_size=given["size"], timeout=datetime.timedelta(seconds=given["timeout"]))
    tell(names[given["function"]](given["rank"], given["size"], **given["arguments"]))
    dist.destroy_process_group()

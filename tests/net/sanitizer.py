# SPDX-License-Identifier: BSD-3-Clause
"""What the sanitizers of daemons report, where $SARISSA_DAEMONS is a build that has them: each report is a
file, named after the daemon's program and process.

Leaks are looked for when a daemon ends by itself; one that is killed has none.
"""

import contextlib
import os
import tempfile
from pathlib import Path

# what is freed is kept back for a while, so that use of it is seen: little, as chaos measures memory
ADDRESS = "handle_abort=1:detect_stack_use_after_return=0:quarantine_size_mb=8:malloc_context_size=12"
# beside the other one it cannot report to a file: its words go to the daemon's log, its abort is reported
UNDEFINED = "halt_on_error=1:print_stacktrace=1:abort_on_error=1"
# DPDK's AF_XDP driver gives back neither its socket's memory nor the program when it is closed
KEPT = ("libbpf.so", "libxdp.so")
LINES = 60  # of a report

folder = None  # where they report


@contextlib.contextmanager
def reports():
    """For the time of the block heard() gives what is reported."""
    global folder
    if "SARISSA_DAEMONS" not in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="sarissa-reports-") as folder:
        kept = Path(folder) / "kept"
        kept.write_text("".join(f"leak:{what}\n" for what in KEPT))
        where = f"log_path={folder}/report:log_exe_name=1"
        os.environ["ASAN_OPTIONS"] = f"detect_leaks=1:{ADDRESS}:{where}"
        os.environ["UBSAN_OPTIONS"] = f"{UNDEFINED}:{where}"
        os.environ["LSAN_OPTIONS"] = f"suppressions={kept}:print_suppressions=0"
        yield


def heard():
    """What has been reported since the last call, as text; empty when there is nothing."""
    words = []
    for path in sorted(Path(folder).glob("report.*")) if folder else []:
        lines = path.read_text(errors="replace").splitlines()
        path.unlink()
        words += [f"{path.name.removeprefix('report.')}:", *lines[:LINES]]
    return "\n".join(words)

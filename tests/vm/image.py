# SPDX-License-Identifier: BSD-3-Clause
"""What a guest boots: a kernel of Debian's, and a file system in memory of our binaries, what they load,
and busybox. For tests/vm; knows nothing of cards or cases."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from lib.cluster import nodes
from lib.shell import build_dir
from netlib import Skip

HERE = Path(__file__).resolve().parent
KERNEL = "linux-image-cloud-amd64"  # names the package that has the kernel
MODULES = ("virt/lib/irqbypass", "drivers/vfio/vfio", "drivers/vfio/vfio_virqfd",
           "drivers/vfio/vfio_iommu_type1", "drivers/vfio/pci/vfio-pci-core",
           "drivers/vfio/pci/vfio-pci", "drivers/uio/uio", "drivers/uio/uio_pci_generic")
DRIVERS = ("net_virtio", "net_e1000", "net_vmxnet3", "mempool_ring", "bus_pci", "bus_vdev")
LIBRARIES = "usr/lib/x86_64-linux-gnu"  # where every loader looks
FETCH_S = 120


def loaded(program):
    """The libraries that a program or a library loads, by name."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return dict(re.findall(r"(\S+) => (/\S+)", out))


def need_qemu():
    """The programs that a machine may lack."""
    if not shutil.which("qemu-system-x86_64"):
        raise Skip("QEMU is not there: scripts/setup --vm")
    if not shutil.which("busybox") or loaded(shutil.which("busybox")):
        raise Skip("a static busybox is not there: scripts/setup --vm")


def fetch(folder):
    """The kernel package, unpacked into folder; nothing of it is installed here."""
    depends = subprocess.run(["apt-cache", "depends", KERNEL], capture_output=True, text=True)
    package = re.search(r"Depends: (linux-image-\S+)", depends.stdout)
    if not package:
        raise Skip(f"apt knows no {KERNEL}: apt-get update, or set SARISSA_VM_KERNEL")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        os.chmod(scratch, 0o755)  # apt fetches as a user of its own
        got = subprocess.run(["apt-get", "-q", "download", package[1]], cwd=scratch, timeout=FETCH_S,
                             capture_output=True, text=True)
        files = list(Path(scratch).glob("*.deb"))
        if got.returncode or not files:
            raise Skip(f"{package[1]} cannot be had: {got.stderr.strip()[-200:]}")
        subprocess.run(["dpkg-deb", "-x", files[0], Path(scratch) / "x"], check=True)
        (Path(scratch) / "x").rename(folder)


def kernel():
    """Its folder, with boot/ and lib/modules/: $SARISSA_VM_KERNEL, or fetched once per build."""
    if named := os.environ.get("SARISSA_VM_KERNEL"):
        return Path(named)
    folder = build_dir() / "vm/kernel"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        fetch(folder)
    return folder


class Archive:
    """A cpio archive (newc), as the kernel unpacks it. Not compressed: an emulated machine would take
    longer to unpack it than we to read it."""

    def __init__(self):
        self.parts, self.folders, self.count = [], set(), 0

    def entry(self, path, mode, data=b""):
        self.count += 1
        name = path.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, path):
        for parent in [*reversed(Path(path).parents), Path(path)][1:]:
            if parent not in self.folders:
                self.folders.add(parent)
                self.entry(str(parent), stat.S_IFDIR | 0o755)

    def file(self, path, source, mode=0o755):
        self.folder(Path(path).parent)
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
        self.entry(path, stat.S_IFREG | mode, data)

    def link(self, path, target):
        self.folder(Path(path).parent)
        self.entry(path, stat.S_IFLNK | 0o777, target.encode())

    def write(self, path):
        self.entry("TRAILER!!!", 0)
        path.write_bytes(b"".join(self.parts))


def plugins():
    """The drivers of DPDK, by the name that it looks for."""
    folder = next(Path("/usr/lib/x86_64-linux-gnu/dpdk").glob("pmds-*"))
    abi = folder.name.removeprefix("pmds-")
    return folder, {f"librte_{name}.so.{abi}": (folder / f"librte_{name}.so.{abi}") for name in DRIVERS}


def initrd(path):
    """Writes the file system: our programs, their libraries, DPDK's drivers, modules of the kernel."""
    root = kernel()
    modules = next((root / "lib/modules").iterdir()) / "kernel"
    folder, drivers = plugins()
    out, libraries = Archive(), {}
    out.file("init", HERE / "init")
    out.file("bin/busybox", shutil.which("busybox"))
    programs = {"sarissa-dataplane": "dataplane", "sarissa-control": "control", "sarissa": "cli"}
    for name, kind in programs.items():
        out.file(f"bin/{name}", nodes.binary(kind))
        libraries |= loaded(nodes.binary(kind))
    for driver in drivers.values():
        libraries |= loaded(driver)
        libraries[driver.name.rpartition(".")[0]] = driver
    for name, library in libraries.items():
        out.file(f"{LIBRARIES}/{name}", library)
    for name in drivers:  # the same files: loaded twice, a bus would be there twice
        out.link(f"{str(folder)[1:]}/{name}", f"../../{name.rpartition('.')[0]}")
    out.file("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2")
    for place in ("proc", "sys", "dev"):
        out.folder(place)
    for module in MODULES:
        out.file(f"modules/{Path(module).name}.ko", modules / f"{module}.ko")
    out.file("modules/order", " ".join(f"{Path(m).name}.ko" for m in MODULES).encode())
    out.write(path)
    return next((root / "boot").glob("vmlinuz-*"))

# SPDX-License-Identifier: BSD-3-Clause
"""Objects into and out of memory of a GPU, on two real nodes. The driver is the stand-in of tests/unit/fixtures/cuda: its
devices have memory of this process, and its asynchronous copies refuse memory that is not registered."""

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sarissa
import sarissa.torch
import torch
from sarissa._torch import device

FOLDER = Path(os.environ["SARISSA_BUILD"]) / "tests/unit/fixtures/cuda"
SIZE = 24 << 20


@pytest.fixture(scope="module")
def driver():
    """The extension finds it by its name, libcuda.so.1, as it is loaded already."""
    return ctypes.CDLL(str(FOLDER / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(2, store=64) as nodes:
        yield nodes


class Memory:
    """Of the device."""

    def __init__(self, driver, nbytes):
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(nbytes)) == 0
        self.address = address.value
        self.bytes = (ctypes.c_ubyte * nbytes).from_address(self.address)


def calls(driver, name):
    return driver.standin_calls(name.encode())


def test_an_object_of_another_node_comes_while_it_is_written(driver, cluster):
    data = torch.randint(0, 256, (SIZE,), dtype=torch.uint8).numpy()
    there = Memory(driver, SIZE)
    before, got = calls(driver, "cuMemcpyHtoDAsync_v2"), []
    with cluster[0].create("grows", SIZE) as writer:
        writer.data[:] = memoryview(data)
        writer.publish(4 << 20)
        thread = threading.Thread(target=lambda: got.append(device.copy_to(cluster[1], "grows", there.address, SIZE, 0, 60)))
        thread.start()
        while calls(driver, "cuMemcpyHtoDAsync_v2") == before:  # of an object that is not complete
            thread.join(0.01)
            assert thread.is_alive()
        writer.publish(SIZE)
    thread.join()
    assert got == [SIZE]
    assert bytes(there.bytes) == data.tobytes()
    assert calls(driver, "cuMemcpyHtoD_v2") == 0  # none went through the driver's own buffers


def test_memory_of_a_device_becomes_an_array(driver, cluster):
    here = Memory(driver, SIZE)
    values = torch.arange(SIZE // 4, dtype=torch.float32).reshape(2, -1)
    ctypes.memmove(here.address, values.data_ptr(), SIZE)
    meta = sarissa._arrays.write(sarissa._arrays.Meaning("<f4", tuple(values.shape)))
    device.copy_from(cluster[0], "array", here.address, SIZE, 0, meta)
    got = cluster[1].get("array", timeout=60)
    assert got.shape == values.shape and torch.equal(torch.from_numpy(got.copy()), values)
    with pytest.raises(sarissa.Exists):
        device.copy_from(cluster[0], "array", here.address, SIZE, 0, meta)


def test_failures_have_names(driver, cluster):
    there = Memory(driver, 8)
    cluster[0].put("ten", b"0123456789")
    with pytest.raises(sarissa.OutOfRange, match="ten.*10 bytes.*room for 8"):
        device.copy_to(cluster[0], "ten", there.address, 8, 0, 5)
    with pytest.raises(sarissa.TimedOut):
        device.copy_to(cluster[0], "none", there.address, 8, 0, 0.05)
    with pytest.raises(sarissa.InvalidArgument, match="is no memory of a GPU"):
        device.copy_to(cluster[0], "ten", 4096, 10, 0, 5)
    driver.standin_fail(b"cuEventRecord", 801, 0)
    with pytest.raises(sarissa.DeviceError, match="CUDA error 801, CUDA_ERROR_NOT_SUPPORTED"):
        device.copy_to(cluster[0], "ten", Memory(driver, 10).address, 10, 0, 5)
    driver.standin_fail(None, 0, 0)
    with pytest.raises(ValueError, match="this tensor is on cpu"):
        sarissa.torch.to_device("ten", torch.zeros(10))
    with pytest.raises(ValueError, match="this tensor is on cpu"):
        sarissa.torch.from_device("ten", torch.zeros(10))


def test_without_a_driver(cluster):
    """In a process that does not find the stand-in."""
    if Path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").exists():
        pytest.skip("this machine has a CUDA driver")
    program = ("import sarissa\nfrom sarissa._torch import device\nnode = sarissa.Node()\n"
               "try:\n    device.copy_to(node, 'x', 4096, 8, 0, 5)\nexcept sarissa.NoDevice as error:\n    print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], env=cluster.environment(0), capture_output=True, text=True, timeout=60)
    assert "no CUDA driver" in done.stdout, done

# SPDX-License-Identifier: BSD-3-Clause
"""The lines that a driver of Dask or Ray takes on its standard input; each is answered with one JSON object. dask_driver.py
says what they mean. It does not know how a system moves an object."""

import json
import sys


def act(driver, verb, words):
    if verb in ("fill", "fill-f32"):
        return driver.fill(int(words[0]), verb == "fill-f32")
    if verb == "ready":
        return driver.ready(words[0], words[1] == "1")
    if verb == "go":
        return driver.go(words[0], [int(word) for word in words[1:]])
    return driver.check()


def serve(driver):
    for line in sys.stdin:
        verb, *words = line.split()
        print(json.dumps(act(driver, verb, words)), flush=True)

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""enum sar_error is the table of errors: sar_strerror has words for each, Python a class, sarissa(3) an entry, and
headers and pages name no other error.

usage: errors.py
"""

import errno
import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEADERS = "".join(path.read_text() for path in sorted((ROOT / "include/sarissa").glob("*.h")))
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs/man").glob("sar*.3"))}
PYTHON_ONLY = {"EINTR"}  # a signal ends waits of Python alone


def classes():
    spec = importlib.util.spec_from_file_location("errors", ROOT / "client/python/sarissa/_errors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {errno.errorcode[number] for number in module.KINDS}


def differences(what, found, wanted):
    return ([f"{name}: {what} lack it" for name in sorted(wanted - found)] +
            [f"{name}: {what} have it, enum sar_error has not" for name in sorted(found - wanted)])


def main():
    table = dict(re.findall(r"^\t(SAR_E_\w+) = -(E\w+),", HEADERS, flags=re.M))
    numbers = {errno.errorcode[getattr(errno, name)] for name in table.values()}  # ENOTSUP is EOPNOTSUPP
    words = re.findall(r"^\t\{(E\w+), \"", (ROOT / "client/api/error.c").read_text(), flags=re.M)
    found = [f"{name}: sar_strerror has it twice" for name in set(words) if words.count(name) > 1]
    found += differences("the texts of sar_strerror", set(words), set(table.values()))
    found += differences("the classes of Python", classes() - PYTHON_ONLY, numbers)
    listed = re.findall(r"^\.It Dv (SAR_E_\w+) Pq Er (E\w+)$", PAGES["sarissa.3"], flags=re.M)
    found += differences("the entries of sarissa(3)", {" ".join(one) for one in listed},
                         {" ".join(one) for one in table.items()})
    found += differences("the headers' comments", set(re.findall(r"SAR_E_\w+", HEADERS)) | set(table), set(table))
    bare = re.findall(r"[^=] (-E[A-Z0-9]{3,})\b", HEADERS)
    found += [f"{name}: a header names it so, and not as SAR_E_..." for name in sorted(set(bare))]
    for page, text in PAGES.items():
        named = set(re.findall(r"\b[DE][rv] -?(E[A-Z0-9]{3,})\b", text))
        found += [f"{page}: {name} is not in enum sar_error" for name in sorted(named - set(table.values()))]
    if len(table) < 30:
        found.append(f"only {len(table)} errors were found: is the search still right?")
    print("\n".join(found) or f"{len(table)} errors")
    return 1 if found else 0


sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the lint, each a generator of offences (line, text) for one file."""

import ast
import re
from pathlib import Path

# A file is never split for its length alone: a split that makes statics global is worse than a long
# file. So the cap is far, and above the hint one looks whether the file serves two purposes.
FILE_LINES_MAX = 1000
FILE_LINES_HINT = 600
FUNCTION_LINES_MAX = 70

C_LIKE = (".c", ".h")
# where the licence tag may be missing: data, and formats without comments
NO_TAG = (".abi", ".json", ".jsonl", ".md", ".csv", ".svg", ".png", ".gitignore", "LICENSE")

# folder -> headers that it must not include (regular expressions on what stands in the include)
DPDK = r"rte_[\w]+\.h"
LIBC_IO = (r"(stdio|unistd|fcntl|poll|time|signal|pthread|threads|stdlib|dirent|syslog|netdb"
           r"|sys/\w+|arpa/\w+|net/\w+|linux/\w+)\.h")
EVENT_LOOP = r"uv\.h"
PROTOBUF = r"(protobuf-c/.*|.*\.pb-c\.h)"
ARROWS = (
    ("dataplane/core/", (DPDK, LIBC_IO, EVENT_LOOP, PROTOBUF)),
    ("control/core/", (DPDK, LIBC_IO, EVENT_LOOP, PROTOBUF)),
    ("dataplane/", (r"(\.\./)*control/.*", EVENT_LOOP, PROTOBUF)),
    ("control/", (r"(\.\./)*dataplane/.*",)),
    ("client/", (DPDK, r"(\.\./)*(control|dataplane)/.*", EVENT_LOOP, PROTOBUF)),
    ("ebpf/", (r"(\.\./)*(control|dataplane|client)/.*",)),
    ("include/", (r"(\.\./)*(control|dataplane|client)/.*", EVENT_LOOP, PROTOBUF)),
)
PROTOBUF_HOME = "control/rpc/"

# what a core must not call: memory, clocks, output, randomness, other threads
CORE_CALLS = re.compile(
    r"(?<![\w.>])(malloc|calloc|realloc|free|aligned_alloc|mmap|printf|fprintf|puts|perror|abort"
    r"|clock_gettime|gettimeofday|time|rand|random|getrandom|sleep|usleep|nanosleep|read|write"
    r"|send|recv|socket|getenv|exit|_exit)\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# absolute paths of somebody's machine, and numbers of tickets that a reader cannot look up
PRIVATE = re.compile(r"(?<![\w.$}])/(home|root|work|Users)/|\bissues? #?\d|(?<![\w&])#\d+\b(?!\.)")
# A ticket that a reader can look up names its project: "libuv #4127", "DPDK bug 1053", "gcc PR 105593".
UPSTREAMS = ("bpftool", "clang", "cmocka", "DPDK", "gcc", "glibc", "ISA-L", "libbpf", "libsodium",
             "libuv", "Linux", "LLVM", "meson", "OpenMPI", "Gloo", "Dask", "Hoplite", "Pktgen",
             "protobuf-c", "Ray", "valgrind")
UPSTREAM_BUG = re.compile(r"\b(?:" + "|".join(UPSTREAMS) + r")(?:'s)? "
                          r"(?:(?:bug|issue|PR|pull request) )?#?\d+\b", re.I)

# what else the names of functions in a folder begin with: the struct that they are about
WORDS = {"client/queue": ("op",), "client/python/extension": ("queue", "kept", "reduce")}
# files whose functions bear the name of what they belong to: the engine and control as others call them, packets,
# objects, and what a library wants to find under its own name
STRANGERS = {
    "control/core/cluster/handshake.c", "control/core/config.c", "control/core/flow/buffers.c",
    "control/core/session/put.c", "control/core/session/sessions.c", "control/core/store/recovery.c",
    "control/core/transfer/fetch.c", "control/shell/pump.c",
    "dataplane/core/plan/event.c", "dataplane/core/kernel/kernel_control.c", "dataplane/core/plan/plan.c", "dataplane/core/receive.c",
    "dataplane/core/wire/wire.c", "dataplane/io/ports/xdp_attach.c", "dataplane/io/ports/xdp_kick.c"}


def read(path):
    file = Path(__file__).resolve().parents[2] / path
    return file.read_text().splitlines() if file.exists() else []


def tag(path, lines):
    if path.endswith(NO_TAG) or not any(lines):
        return
    if not any("SPDX-License-Identifier: BSD-3-Clause" in line for line in lines[:3]):
        yield 1, "no SPDX-License-Identifier in the first three lines"


def counts_lines(path):
    return not path.endswith((".abi", ".md", ".json", ".jsonl", ".csv", ".svg", "LICENSE"))


def size(path, lines):
    if counts_lines(path) and len(lines) > FILE_LINES_MAX:
        yield len(lines), f"{len(lines)} lines; at most {FILE_LINES_MAX}"


def size_hint(path, lines):
    if counts_lines(path) and FILE_LINES_HINT < len(lines) <= FILE_LINES_MAX:
        yield len(lines), f"{len(lines)} lines: does it serve two purposes?"


def functions_c(path, lines):
    """clang-format puts the braces of a function, and of nothing else, into column 0."""
    if not path.endswith(C_LIKE):
        return
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line.startswith("}") and begin:
            if number - begin - 1 > FUNCTION_LINES_MAX:
                yield begin, f"function of {number - begin - 1} lines; " \
                             f"at most {FUNCTION_LINES_MAX}"
            begin = None


def functions_python(path, lines):
    if not (path.endswith(".py") or lines[:1] and "python" in lines[0]):
        return
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            count = node.end_lineno - node.lineno + 1
            if count > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name}() has {count} lines; " \
                                   f"at most {FUNCTION_LINES_MAX}"


def arrows(path, lines):
    if not path.endswith(C_LIKE):
        return
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not found:
            continue
        header = found.group(1)
        for folder, forbidden in ARROWS:
            if path.startswith(folder) and any(re.fullmatch(f, header) for f in forbidden) and \
                    not (path.startswith(PROTOBUF_HOME) and re.fullmatch(PROTOBUF, header)):
                yield number, f"{folder} must not include <{header}>"
        if re.fullmatch(PROTOBUF, header) and path.startswith("control/") and \
                not path.startswith(PROTOBUF_HOME):
            yield number, f"only {PROTOBUF_HOME} sees protobuf-c"


def without_comments(lines):
    """The lines with comments and string literals blanked, as many as before."""
    text = "\n".join(lines)

    def blank(found):
        return re.sub(r"[^\n]", " ", found.group(0))

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text,
                  flags=re.S).split("\n")


def core_calls(path, lines):
    if not (path.endswith(C_LIKE) and re.match(r"(dataplane|control)/core/", path)):
        return
    for number, line in enumerate(without_comments(lines), 1):
        found = CORE_CALLS.search(line)
        if found:
            yield number, f"a core calls no {found.group(1)}(): it takes memory, time and " \
                          "randomness from its caller"


def unfinished(path, lines):
    if path.startswith("tests/lint/"):
        return
    for number, line in enumerate(lines, 1):
        found = UNFINISHED.search(line)
        if found:
            yield number, f"{found.group(1)}: finish it or describe the limit"


def private(path, lines):
    if path.startswith("tests/lint/") or path.endswith(".svg"):  # an SVG names its parts by such numbers
        return
    for number, line in enumerate(lines, 1):
        if not re.match(r"\s*#\s*(include|define|if|el)", line) and \
                PRIVATE.search(UPSTREAM_BUG.sub("", line)):
            yield number, "names a path or a number of somebody's own: say what it is"


def header(path, lines):
    """A file says at its head what it is for; a .c file may leave that to the header of its name."""
    if not path.endswith(C_LIKE):
        return
    both = [lines] if path.endswith(".h") else [lines, read(path[:-2] + ".h")]
    if not any(any(line.startswith("/*") for line in some[1:3]) for some in both):
        yield 2, "no comment at the head: what the file is for, who calls it, what it must not know"


def pointers(path, lines):
    """A condition asks a pointer by its name alone, as the kernel does; a value of type bool may say != NULL."""
    if not path.endswith(C_LIKE):
        return
    for number, line in enumerate(without_comments(lines), 1):
        if re.search(r"== NULL\b", line) or re.search(r"!= NULL\)* (&&|\|\||\?)", line) or \
                re.search(r"\b(if|while) \(.*!= NULL\)", line):
            yield number, "a condition asks a pointer as p or !p, without NULL"


def nouns(path, lines):
    """A comment begins with its subject: "What is left" and "The same" send the reader elsewhere for it."""
    if path.endswith(C_LIKE) and not path.startswith("tests/"):
        for number, line in enumerate(lines, 1):
            if re.search(r"/\* (What|The same)\b", line):
                yield number, "a comment that begins with a pronoun: name the subject"


def include_once(path, lines):
    """The name that a header defines, to be included once, is its path."""
    if not path.endswith(".h") or path.startswith("include/sarissa/"):
        return
    wanted = "SARISSA_" + re.sub(r"[^A-Z0-9]", "_", path.upper())
    for number, line in enumerate(lines, 1):
        found = re.match(r"#ifndef (SARISSA_\w+_H)$", line)
        if found and found.group(1) != wanted:
            yield number, f"the name that this header defines is {wanted}"


def family(path):
    """What the name of a function of that file begins with: the file's name, its first word, its module's name."""
    parts = Path(path).with_suffix("").parts
    stem = parts[-1]
    words = {stem, stem.split("_")[0], *parts[:-1], *WORDS.get(str(Path(path).parent), ())}
    return {one for word in words for one in (word, f"{word}s", word.removesuffix("s"), word.removesuffix("es"))}


def tells_file(path, lines):
    """A function that other files call tells by its name where it is."""
    if not path.endswith(".c") or not path.startswith(("control/", "client/", "dataplane/")) or \
            path in STRANGERS or path.startswith("dataplane/core/kernel/kernel_"):
        return
    prefixes = family(path)
    for number, line in enumerate(lines, 1):
        if line != "{":
            continue
        begin = number - 2
        while begin > 0 and lines[begin - 1] and not re.match(r"[}#/\s]| \*", lines[begin - 1]):
            begin -= 1
        text = " ".join(lines[begin:number - 1])
        found = re.search(r"(\w+)\(", re.sub(r"__attribute__\(\(.*?\)\)", "", text))
        if not found or re.search(r"\bstatic\b|^enum|^typedef", text[:found.start()]):
            continue
        name = found.group(1)
        if not name.startswith(("sar_", "PyInit_")) and name != "main" and \
                not any(name == one or name.startswith(f"{one}_") for one in prefixes):
            yield number - 1, f"{name}() does not tell its file: begin it with {Path(path).stem}_"


ALL = (tag, size, functions_c, functions_python, arrows, core_calls, unfinished, private, header, nouns, pointers,
       include_once, tells_file)
# printed, and no reason to fail
HINTS = (size_hint,)

# SPDX-License-Identifier: BSD-3-Clause
"""Code for tasks that speak to control's socket without the library (include/internal/session.h)."""

import re

from netlib import ROOT

SESSION_H = (ROOT / "include/internal/session.h").read_text()
VERSION = int(re.search(r"SESSION_VERSION = (\d+)", SESSION_H).group(1))

# later connections do not get the store
BECOME_NOBODY = """
import os
os.setgid(65534)
os.setuid(65534)
"""

RAW = f"VERSION = {VERSION}\n" + '''
import collections, mmap, os, socket, struct
MAGIC = 0x53534553
ATTACH, CREATE, PUBLISH, SEAL, RESUME, LEAVE = 1, 2, 3, 4, 14, 25
NAME_BYTES = 256
META_BYTES = 136 # a byte, 128 and the padding of the struct
REDUCTION = struct.Struct("=IIIIIIq") # op, dtype, num, count, min, reserved, deadline_ns
Answer = collections.namedtuple("Answer", "op flags seq status slot generation offset size fds")

def raw_connect():
  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  s.connect(os.environ["SARISSA_SOCKET"])
  return s

def raw_request(op, identity=bytes(16), slot=0, generation=0, size=0, watermark=0, pin=2**32 - 1):
  return (struct.pack("=IHHII", MAGIC, op, VERSION, op, slot) + identity
          + struct.pack("=QQQqII", generation, size, watermark, 0, pin, 0)
          + bytes(NAME_BYTES + REDUCTION.size + META_BYTES))

def raw_answer(s):
  answer, fds, _, _ = socket.recv_fds(s, 20000, 8)
  return Answer(*struct.unpack_from("=IHHIiI4xQQQ", answer)[1:], fds)

def raw_ask(s, op, *what, along=(), **more):
  socket.send_fds(s, [raw_request(op, *what, **more)], along)
  return raw_answer(s)

def raw_ended(s):
  """Whether control has closed the connection, rather than answered."""
  try:
    return s.recv(1) == b""
  except ConnectionResetError: # it had more to read
    return True
'''

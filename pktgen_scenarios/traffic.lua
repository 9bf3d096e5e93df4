-- SPDX-License-Identifier: BSD-3-Clause
-- What the scenarios for Pktgen-DPDK share. They read the environment:
--   PKTGEN_PORT   the port that sends (0)
--   RATE          per cent of the line rate (100)
--   SECONDS       how long (10)
--   NODE_IP, NODE_MAC, SOURCE_IP   sweep.lua only: where to, and from where
-- The packets of all others come from the pcap file that pktgen was started with (-s PORT:FILE).
-- Whatever goes wrong is said in one line, and ends pktgen with status 1: it would wait for ever.

local traffic = {}
local SETTLE_MS = 2200 -- pktgen reads the port's counters once a second
local BURST_MAX_MS = 60000
local FRAME_MAX = 1514 -- without FCS; longer ones are cut unless pktgen has -j
local port, rate, seconds
local spent_ms = 0

local function fail(...)
  error(string.format(...), 0)
end

local function number(name, default, least, most)
  local text = os.getenv(name) or default
  local value = tonumber(text)
  if not value or value < least or value > most then
    fail("%s=%s: a number from %g to %g", name, text, least, most)
  end
  return value
end

local function matching(name, pattern, what)
  local text = os.getenv(name) or fail("%s is not set: %s", name, what)
  if not text:match("^" .. pattern .. "$") then
    fail("%s=%s: %s", name, text, what)
  end
  return text
end

local function mac(name)
  return matching(name, "%x%x:%x%x:%x%x:%x%x:%x%x:%x%x", "six bytes such as 0c:42:a1:00:00:01")
end

local function ip(name)
  local text = matching(name, "%d+%.%d+%.%d+%.%d+", "an IPv4 address")
  for part in text:gmatch("%d+") do
    if tonumber(part) > 255 then
      fail("%s=%s: an IPv4 address", name, text)
    end
  end
  return text
end

local function wait(ms)
  pktgen.delay(ms)
  spent_ms = spent_ms + ms
end

-- How pktgen was started; another file than /proc/self/cmdline stands for it in the checks.
local function arguments()
  local file = io.open(os.getenv("PKTGEN_CMDLINE") or "/proc/self/cmdline", "rb")
  local list = {}
  for one in (file and file:read("a") or ""):gmatch("[^%z]+") do list[#list + 1] = one end
  if file then file:close() end
  return list
end

local function started_with_pcap()
  local jumbo, path = false, nil
  local list = arguments()
  for i, one in ipairs(list) do
    jumbo = jumbo or one:match("^%-%a*j") ~= nil
    local given = one == "-s" and list[i + 1] or one:match("^%-s(.+)")
    path = path or given and given:match("^" .. port .. ":(.+)")
  end
  return path, jumbo
end

-- How many frames a pcap file has, and the longest.
local function frames_of(path)
  local file = io.open(path, "rb") or fail("%s cannot be read: name it with -s %s:FILE", path, port)
  local count, longest = 0, 0
  local head = file:read(24)
  if not head or #head < 24 or string.unpack("<I4", head) ~= 0xa1b2c3d4 then
    fail("%s is no pcap file of ours: make one with 'scenario pcap'", path)
  end
  while true do
    local record = file:read(16)
    if not record or #record < 16 then break end
    local bytes = string.unpack("<I4", record, 9)
    count, longest = count + 1, math.max(longest, bytes)
    file:seek("cur", bytes)
  end
  file:close()
  return count, longest
end

local function check_pcap()
  local path, jumbo = started_with_pcap()
  if not path then
    fail("pktgen has no packets of ours for port %s: start it with -s %s:FILE", port, port)
  end
  local count, longest = frames_of(path)
  if count == 0 then
    fail("%s has no frames: make it again with 'scenario pcap'", path)
  end
  if longest > FRAME_MAX and not jumbo then
    fail("%s has frames of %d bytes, which are cut: start pktgen with -j", path, longest)
  end
end

local function begin()
  port = os.getenv("PKTGEN_PORT") or "0"
  if not port:match("^%d+$") then
    fail("PKTGEN_PORT=%s: the number of a port", port)
  end
  rate = number("RATE", "100", 0.01, 100)
  seconds = number("SECONDS", "10", 0.1, 1e6)
  pktgen.screen("off")
  pktgen.stop(port)
  local state = pktgen.linkState(port)[tonumber(port)]
  if not state or not string.find(string.upper(state), "UP", 1, true) then
    fail("port %s has no link (%s): check the cable and the driver", port, state)
  end
  pktgen.set(port, "rate", rate)
end

-- As pktgen has last read them. Version 26 takes one argument, and has a table for now.
local function counts()
  local two, all = pcall(pktgen.portStats, port, "port")
  local one = (two and all or pktgen.portStats(port))[tonumber(port)]
  return one.curr or one
end

local function settled()
  pktgen.delay(SETTLE_MS)
  local now = counts()
  return {opackets = now.opackets, oerrors = now.oerrors}
end

local function report(name, before, after, took)
  local sent = after.opackets - before.opackets
  print(string.format('{"scenario": "%s", "sent": %d, "not_sent": %d, "seconds": %g, "pps": %.0f}',
                      name, sent, after.oerrors - before.oerrors, took, sent / took))
  return sent
end

-- Sends while work() waits, between two looks at the counters.
local function measured(name, work)
  pktgen.clr()
  local before = settled()
  spent_ms = 0
  work()
  pktgen.stop(port)
  local took = spent_ms / 1000
  return report(name, before, settled(), took)
end

local function send_for(for_seconds)
  pktgen.set(port, "count", 0)
  pktgen.start(port)
  wait(math.floor(for_seconds * 1000))
end

-- The port stops by itself after so many packets: at a low RATE that takes its time.
local function send_burst(count)
  local begun = spent_ms
  pktgen.set(port, "count", count)
  pktgen.start(port)
  repeat
    wait(1)
    if spent_ms - begun > BURST_MAX_MS then
      fail("a burst of %d packets takes more than a minute: use a higher RATE", count)
    end
  until pktgen.isSending(port)[tonumber(port)] == "n"
end

-- Runs a scenario to its end, and pktgen with it.
local function to_the_end(scenario)
  local fine, why = xpcall(scenario, function(text) return text end)
  if not fine then
    io.stderr:write("traffic: ", tostring(why), "\n")
  end
  pktgen.quit()
  if not fine then
    os.exit(1)
  end
end

-- The packets of the pcap file, again and again.
function traffic.replay(name)
  to_the_end(function()
    begin()
    check_pcap()
    pktgen.pcap(port, "on")
    measured(name, function() send_for(seconds) end)
    pktgen.pcap(port, "off")
  end)
end

-- Bursts of count packets of the pcap file at line rate, with pauses between them.
function traffic.bursts(name, count, pause_s)
  to_the_end(function()
    local bursts = 0
    begin()
    check_pcap()
    pktgen.pcap(port, "on")
    local sent = measured(name, function()
      repeat
        send_burst(count)
        wait(math.floor(pause_s * 1000))
        bursts = bursts + 1
      until spent_ms >= seconds * 1000
    end)
    pktgen.pcap(port, "off")
    if sent < bursts * count then
      fail("%d of %d packets left: the port lost some, see not_sent", sent, bursts * count)
    end
  end)
end

-- Pktgen's own packets to the node's port, frame size by frame size (FCS included).
function traffic.sizes(name, sizes)
  to_the_end(function()
    local to_mac, to, from = mac("NODE_MAC"), ip("NODE_IP"), ip("SOURCE_IP")
    begin()
    pktgen.set_mac(port, "dst", to_mac)
    pktgen.set_ipaddr(port, "dst", to)
    pktgen.set_ipaddr(port, "src", from .. "/32")
    pktgen.set_proto(port, "udp")
    pktgen.set(port, "dport", 7400)
    for _, size in ipairs(sizes) do
      pktgen.set(port, "size", size)
      measured(name .. "-" .. size, function() send_for(seconds) end)
    end
  end)
end

return traffic

-- SPDX-License-Identifier: BSD-3-Clause
-- What the scenarios for Pktgen-DPDK share. They are told by the environment:
--   PKTGEN_PORT   the port that sends (0)
--   RATE          per cent of the line rate (100)
--   SECONDS       how long (10)
--   NODE_IP, NODE_MAC, SOURCE_IP   sweep.lua only: where to, and from where
-- The packets of all others come from the pcap file that pktgen was started with (-s).

local traffic = {}
local port = os.getenv("PKTGEN_PORT") or "0"
local rate = tonumber(os.getenv("RATE") or "100")
local seconds = tonumber(os.getenv("SECONDS") or "10")

local function fail(text)
  pktgen.quit()
  error(text, 0)
end

local function need(name)
  return os.getenv(name) or fail(name .. " is not set: see the head of traffic.lua")
end

local function begin()
  pktgen.screen("off")
  pktgen.stop(port)
  local state = pktgen.linkState(port)[tonumber(port)]
  if not string.find(string.upper(state), "UP", 1, true) then
    fail("port " .. port .. " has no link (" .. state .. "): check the cable and the driver")
  end
  pktgen.set(port, "rate", rate)
end

-- Starts the port, which stops by itself after count packets (0: when it is told to).
local function send(count, for_seconds)
  pktgen.clr()
  pktgen.set(port, "count", count)
  pktgen.start(port)
  pktgen.delay(math.floor(for_seconds * 1000))
  pktgen.stop(port)
  pktgen.delay(200)
  return pktgen.portStats(port, "port")[tonumber(port)]
end

local function report(name, sent, took)
  print(string.format('{"scenario": "%s", "sent": %d, "not_sent": %d, "seconds": %g, "pps": %.0f}',
                      name, sent.opackets, sent.oerrors, took, sent.opackets / took))
end

-- The packets of the pcap file, again and again.
function traffic.replay(name)
  begin()
  pktgen.pcap(port, "on")
  report(name, send(0, seconds), seconds)
  pktgen.pcap(port, "off")
  pktgen.quit()
end

-- Bursts of count packets of the pcap file at line rate, with pauses between them.
function traffic.bursts(name, count, pause_s)
  local total = {opackets = 0, oerrors = 0}
  begin()
  pktgen.pcap(port, "on")
  for _ = 1, math.max(1, math.floor(seconds / pause_s)) do
    local one = send(count, pause_s)
    total.opackets = total.opackets + one.opackets
    total.oerrors = total.oerrors + one.oerrors
  end
  report(name, total, seconds)
  pktgen.pcap(port, "off")
  pktgen.quit()
end

-- Pktgen's own packets to the node's port, frame size by frame size (FCS included).
function traffic.sizes(name, sizes)
  begin()
  pktgen.set_mac(port, "dst", need("NODE_MAC"))
  pktgen.set_ipaddr(port, "dst", need("NODE_IP"))
  pktgen.set_ipaddr(port, "src", need("SOURCE_IP") .. "/32")
  pktgen.set_proto(port, "udp")
  pktgen.set(port, "dport", 7400)
  for _, size in ipairs(sizes) do
    pktgen.set(port, "size", size)
    report(name .. "-" .. size, send(0, seconds), seconds)
  end
  pktgen.quit()
end

return traffic

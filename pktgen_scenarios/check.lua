-- SPDX-License-Identifier: BSD-3-Clause
-- Runs scenarios against a stand-in for pktgen that knows its interface as Pktgen-DPDK's
-- app/lpktgenlib.c registers it: unknown functions, wrong numbers of arguments and unknown words
-- are errors. It has pktgen's habits: counters that are read once a second, packets of its own where
-- no pcap file was named, and it ends only by quit. What a scenario says must be what the port did.
-- usage: lua check.lua SCENARIO.lua...

local SET = {count = true, size = true, rate = true, sport = true, dport = true}
local SIDE = {src = true, dst = true}
local STATE = {on = true, off = true, enable = true, disable = true}
local PER_MS = 1000 -- packets of the line rate

-- The port: what it has sent, what pktgen has last read of that, and what it was at the last clr.
local world

local function advance(ms)
  for _ = 1, ms do
    world.now = world.now + 1
    if world.sending then
      local n = PER_MS * world.rate / 100
      if world.left then
        n = math.min(n, world.left)
        world.left = world.left - n
        world.sending = world.left > 0
      end
      world.sent = world.sent + n
      world.busy = world.now
    end
    if world.now % 1000 == 0 then world.read = world.sent end
  end
end

local function port_stats(_, which)
  if (which ~= nil) ~= (world.version < 26) then
    error("pktgen.portStats takes another number of arguments", 0)
  end
  local flat = {opackets = math.floor(world.read - world.base), oerrors = 0}
  return {[0] = world.version < 26 and flat or {curr = flat}, n = 1}
end

local function set(_, what, value)
  if what == "rate" then world.rate = value end
  if what == "count" then world.count = value end
end

local function start()
  world.sending, world.left = true, world.count > 0 and world.count or nil
  world.begun = world.begun or world.now
  world.own = world.own or not world.pcap
end

-- function -> numbers of arguments; the words that an argument may be; what it does
local API = {
  set = {{3}, {[2] = SET}, set},
  set_mac = {{3}, {[2] = SIDE}},
  set_ipaddr = {{3}, {[2] = SIDE}},
  set_proto = {{2}, {[2] = {udp = true, tcp = true, icmp = true}}},
  pcap = {{2}, {[2] = STATE}, function(_, state) world.pcap = state == "on" and world.has_pcap end},
  screen = {{1}, {STATE}},
  start = {{1}, {}, start},
  stop = {{1}, {}, function() world.sending = false end},
  clr = {{0}, {}, function() world.base = world.read end},
  delay = {{1}, {}, advance},
  quit = {{0}, {}, function() world.quit = true end},
  isSending = {{1}, {}, function() return {[0] = world.sending and "y" or "n", n = 1} end},
  linkState = {{1}, {}, function() return {[0] = world.link, n = 1} end},
  portStats = {{1, 2}, {}, port_stats},
}

local function called(name, ...)
  local form = API[name] or error("pktgen has no function " .. name, 3)
  local count, fits = select("#", ...), false
  for _, wanted in ipairs(form[1]) do fits = fits or count == wanted end
  if not fits then error("pktgen." .. name .. " does not take " .. count .. " arguments", 3) end
  for place, words in pairs(form[2] or {}) do
    local word = select(place, ...)
    if not words[word] then
      error(string.format("pktgen.%s does not know '%s'", name, tostring(word)), 3)
    end
  end
  return form[3] and form[3](...)
end

local function pcap_file(bytes)
  local path = os.tmpname()
  local file = io.open(path, "wb")
  file:write(string.pack("<I4I2I2I4I4I4I4", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1),
             string.pack("<I4I4I4I4", 0, 0, bytes, bytes), string.rep("x", bytes))
  file:close()
  return path
end

local GOOD = {NODE_IP = "10.0.0.2", NODE_MAC = "02:00:00:00:00:02", SOURCE_IP = "10.0.0.1",
              SECONDS = "2"}
local real = {getenv = os.getenv, exit = os.exit, print = print, stderr = io.stderr}

-- Runs a script; how: what differs from a good start. Returns status, what it printed and said.
local function run(script, how)
  local environment = setmetatable(how.env or {}, {__index = GOOD})
  local cmdline, pcap = os.tmpname(), pcap_file(how.bytes or 1000)
  local printed, said, status = {}, {}, 0
  local line = how.without_pcap and "pktgen\0-T\0" or "pktgen\0-T\0-s\0" .. "0:" .. pcap .. "\0"
  local file = io.open(cmdline, "wb")
  file:write(line, how.jumbo and "-j\0" or "")
  file:close()
  environment.PKTGEN_CMDLINE = cmdline
  world = {now = 337, sent = 0, read = 0, base = 0, rate = 100, count = 0,
           version = how.version or 23, link = how.link or "<UP-100000-FD>",
           has_pcap = not how.without_pcap}
  pktgen = setmetatable({}, {__index = function(_, name)
    return function(...) return called(name, ...) end
  end})
  os.getenv = function(name) return environment[name] end
  os.exit = function(code) error({exit = code}, 0) end
  print = function(text) printed[#printed + 1] = text end
  io.stderr = {write = function(_, ...) said[#said + 1] = table.concat({...}) end}
  package.loaded.traffic, package.path = nil, "/nowhere/?.lua"
  local fine, why = pcall(dofile, script)
  os.getenv, os.exit, print, io.stderr = real.getenv, real.exit, real.print, real.stderr
  os.remove(cmdline)
  os.remove(pcap)
  if not fine then
    status = type(why) == "table" and why.exit or error(script .. ": pktgen waits for ever after: " ..
                                                       tostring(why), 0)
  end
  assert(world.quit, script .. " does not end pktgen")
  return status, printed, table.concat(said)
end

local function field(text, name)
  return tonumber(text:match('"' .. name .. '": ([%d.e+]+)'))
end

-- What it prints adds up to what the port has sent, and to the time that took.
local function honest(script, how)
  local status, printed, said = run(script, how)
  assert(status == 0, script .. ": " .. said)
  local sent, took = 0, 0
  for _, text in ipairs(printed) do
    sent, took = sent + field(text, "sent"), took + field(text, "seconds")
    assert(math.abs(field(text, "pps") - field(text, "sent") / field(text, "seconds")) < 1, text)
  end
  assert(world.sent > 0, script .. " sends nothing")
  assert(sent == math.floor(world.sent), string.format("%s says %d sent, the port sent %d", script,
                                                       sent, math.floor(world.sent)))
  local whole = (world.busy - world.begun) / 1000
  assert(#printed > 1 or took >= whole - 0.01, script .. " says " .. took .. " s, it took " .. whole)
  assert(script:match("sweep") or not world.own, script .. " sends packets of pktgen's own")
  return sent
end

local function refused(script, how, words)
  local status, _, said = run(script, how)
  assert(status == 1, script .. " ends with 0: " .. said)
  assert(said:find(words, 1, true), script .. " does not speak of " .. words .. ": " .. said)
  assert(select(2, said:gsub("\n", "")) == 1, "not one line: " .. said)
end

for _, wrong in ipairs({[[pktgen.set_rate("0", 10)]], [[pktgen.set("0", "speed", 10)]],
                        [[pktgen.start()]], [[pktgen.pcap("0", "some.pcap")]]}) do
  world = {}
  pktgen = setmetatable({}, {__index = function(_, name)
    return function(...) return called(name, ...) end
  end})
  assert(not pcall(load(wrong)), "this check lets through: " .. wrong)
end
for _, script in ipairs(arg) do
  for _, version in ipairs({23, 26}) do honest(script, {version = version}) end
  refused(script, {env = {RATE = "fast"}}, "RATE=fast")
  refused(script, {env = {SECONDS = "-1"}}, "SECONDS=-1")
  refused(script, {env = {PKTGEN_PORT = "eth0"}}, "PKTGEN_PORT=eth0")
  refused(script, {link = "<--Down-->"}, "no link")
  if script:match("sweep") then
    refused(script, {env = {NODE_MAC = "zz"}}, "NODE_MAC=zz")
    refused(script, {env = {NODE_IP = "abc"}}, "NODE_IP=abc")
    refused(script, {env = {SOURCE_IP = "10.0.0.256"}}, "SOURCE_IP=10.0.0.256")
  else
    refused(script, {without_pcap = true}, "-s 0:FILE")
    refused(script, {bytes = 3000}, "-j")
    honest(script, {bytes = 3000, jumbo = true})
  end
  if script:match("incast") then -- whole bursts, however long they take
    local sent = honest(script, {env = {RATE = "0.1"}})
    assert(sent % 1408 == 0, script .. " cuts bursts: " .. sent .. " packets")
  end
  io.stderr:write("ok   ", script, "\n")
end

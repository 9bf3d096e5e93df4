-- SPDX-License-Identifier: BSD-3-Clause
-- Runs scenarios against a stand-in for pktgen that knows its interface as Pktgen-DPDK's
-- app/lpktgenlib.c registers it: unknown functions, wrong numbers of arguments and unknown words
-- are errors, and so is a scenario that sends nothing.
-- usage: lua check.lua SCENARIO.lua...    environment: SCENARIOS, the folder of the scripts

local SET = {count = true, size = true, rate = true, sport = true, dport = true}
local SIDE = {src = true, dst = true}
local STATE = {on = true, off = true, enable = true, disable = true}
-- function -> number of arguments; the words that an argument may be; what it returns
local API = {
  set = {3, {[2] = SET}},
  set_mac = {3, {[2] = SIDE}},
  set_ipaddr = {3, {[2] = SIDE}},
  set_proto = {2, {[2] = {udp = true, tcp = true, icmp = true}}},
  pcap = {2, {[2] = STATE}},
  screen = {1, {STATE}},
  start = {1}, stop = {1}, clr = {0}, delay = {1}, quit = {0},
  linkState = {1, {}, function() return {[0] = "<UP-100000-FD>", n = 1} end},
  portStats = {2, {[2] = {port = true, rate = true}},
               function() return {[0] = {opackets = 1000, oerrors = 0}, n = 1} end},
}

local function called(calls, name, ...)
  local form = API[name] or error("pktgen has no function " .. name, 3)
  local count = select("#", ...)
  if count ~= form[1] then
    error(string.format("pktgen.%s takes %d arguments, not %d", name, form[1], count), 3)
  end
  for place, words in pairs(form[2] or {}) do
    local word = select(place, ...)
    if not words[word] then
      error(string.format("pktgen.%s does not know '%s'", name, tostring(word)), 3)
    end
  end
  calls[#calls + 1] = name
  return form[3] and form[3]()
end

local function stand_in(calls)
  return setmetatable({}, {__index = function(_, name)
    return function(...) return called(calls, name, ...) end
  end})
end

local function check(script)
  local calls, seen = {}, {}
  pktgen = stand_in(calls)
  package.loaded.traffic = nil
  dofile(script)
  for _, name in ipairs(calls) do seen[name] = true end
  assert(seen.start and seen.stop, script .. " sends nothing")
  assert(calls[#calls] == "quit", script .. " does not end pktgen")
end

local refused = {
  [[pktgen.set_rate("0", 10)]], [[pktgen.set("0", "speed", 10)]], [[pktgen.start()]],
  [[pktgen.pcap("0", "some.pcap")]],
}
for _, wrong in ipairs(refused) do
  pktgen = stand_in({})
  assert(not pcall(load(wrong)), "this check lets through: " .. wrong)
end
for _, script in ipairs(arg) do
  check(script)
  io.stderr:write("ok   ", script, "\n")
end

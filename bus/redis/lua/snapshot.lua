-- How far a group is on one stream, all at one moment: otherwise a signal on its way from one place to another, taken for its
-- next try for instance, would seem to be in none.
--
-- KEYS  1 stream   2 the group's retry set   3 its dead letters
-- ARGV  1 group
-- Returns {what XINFO GROUPS says of it, retrying, dead, {number in hand, oldest entry in hand}, what XINFO CONSUMERS says,
-- entries of the stream}, or nothing when there is no such group.

local found
for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  for place = 1, #info, 2 do
    if info[place] == 'name' and info[place + 1] == ARGV[1] then
      found = info
    end
  end
end
if not found then
  return false
end
local held = redis.call('XPENDING', KEYS[1], ARGV[1])
local consumers = redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
-- A missing value would cut an answer short: the lag that the server does not know, the oldest of nothing.
for place = 2, #found + 2, 2 do
  if found[place - 1] and not found[place] then
    found[place] = ''
  end
end
local entries = redis.call('XLEN', KEYS[1])
return { found, redis.call('ZCARD', KEYS[2]), redis.call('XLEN', KEYS[3]), { held[1], held[2] or '' }, consumers, entries }

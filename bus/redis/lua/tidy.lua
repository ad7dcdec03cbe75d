-- Forget consumers that died: those that hold nothing and have not taken for the takeover time. A living one that is forgotten
-- by mistake is made anew by its next take; one that holds something is never deleted, for that would drop it for ever.
--
-- KEYS  1 stream
-- ARGV  1 group   2 consumer that asks, kept   3 takeover time in milliseconds
-- Returns how many are forgotten.

local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
local forgotten = 0
for _, info in ipairs(consumers.err and {} or consumers) do
  local values = {}
  for place = 1, #info, 2 do
    values[info[place]] = info[place + 1]
  end
  if values['pending'] == 0 and values['idle'] > tonumber(ARGV[3]) and values['name'] ~= ARGV[2] then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], values['name'])
    forgotten = forgotten + 1
  end
end
return forgotten

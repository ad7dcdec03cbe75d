-- Record a beat. The newest wins; a beat from the future of this server's clock counts as now.
--
-- KEYS  1 hash of agents
-- ARGV  1 agent   2 microseconds since 1970, or '' for now
-- Returns 1 when it moved the agent's last moment on.

local time = redis.call('TIME')
local seen = time[1] * 1000000 + time[2]
if ARGV[2] ~= '' then
  seen = math.min(seen, tonumber(ARGV[2]))
end
local before = redis.call('HGET', KEYS[1], ARGV[1])
if before and tonumber(before) >= seen then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', seen))
return 1

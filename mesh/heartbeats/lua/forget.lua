-- Forget an agent, unless it has beaten since it was looked at.
--
-- KEYS  1 hash of agents
-- ARGV  1 agent   2 its last beat as it was seen, microseconds since 1970
-- Returns 1 when the agent is forgotten.

if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
return redis.call('HDEL', KEYS[1], ARGV[1])

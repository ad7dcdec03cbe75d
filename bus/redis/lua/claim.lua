-- Give the channel of a workflow to a segment that begins, unless a later attempt of its run has it. What a segment of another
-- run pushes from now on is refused: segments of different runs are ordered by the moments, here, at which they began.
--
-- KEYS  1 frames   2 newest
-- ARGV  1 run   2 attempt   3 seconds until both keys expire
-- Returns 1, or 0 when a later attempt has it.

require_rights(KEYS[2], { 'hset', 'expire' })
local held = redis.call('HMGET', KEYS[2], 'run', 'attempt')
if held[1] == ARGV[1] and tonumber(held[2]) > tonumber(ARGV[2]) then
  return 0
end
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then
  redis.call('HSET', KEYS[2], 'run', ARGV[1], 'attempt', ARGV[2], 'begun', '0')
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1

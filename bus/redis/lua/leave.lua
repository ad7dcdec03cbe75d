-- Forget a consumer, unless something is in its hands: deleting it would drop that for ever.
--
-- KEYS  1 stream
-- ARGV  1 group   2 consumer
-- Returns 1 when it is forgotten.

local held = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if held.err or held[1] then
  return 0
end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1

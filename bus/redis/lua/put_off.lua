-- Deliver an entry again later: out of the consumer's hands and into the retry set, by the server's clock.
--
-- KEYS  1 stream   2 retry sorted set
-- ARGV  1 group   2 consumer   3 entry id   4 attempts so far   5 delay in milliseconds
-- Returns 1, or 0 when the delivery was not in this consumer's hands.

require_rights(KEYS[1], { 'xpending', 'xack' })
require_rights(KEYS[2], { 'zadd' })
redis.call('ZCARD', KEYS[2])
if not in_hand() then
  return 0
end
local time = redis.call('TIME')
local due = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5]
-- First the write that a full server allows: then it allows the other one too, and nothing is lost in between.
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[2], string.format('%d', due), ARGV[3] .. ' ' .. ARGV[4])
return 1

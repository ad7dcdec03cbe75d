-- Make a delivery a dead letter: a copy of its entry as it was published, with its error. An entry that was trimmed leaves none.
--
-- KEYS  1 stream   2 dead letter stream
-- ARGV  1 group   2 consumer   3 entry id   4 attempts   5 error   6 most dead letters
-- Returns 1, or 0 when the delivery was not in this consumer's hands or there was nothing to copy.

require_rights(KEYS[1], { 'xpending', 'xack' })
require_rights(KEYS[2], { 'xadd' })
redis.call('XLEN', KEYS[2])
if not in_hand() then
  return 0
end
local entry = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])[1]
-- First the write that a full server allows: then it allows the other one too, and nothing is lost in between.
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
if not entry then
  return 0
end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[6], '*', 'e', ARGV[3], 'n', ARGV[4], 'x', ARGV[5], unpack(entry[2]))
return 1

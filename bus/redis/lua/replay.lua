-- Give dead letters to their group again, due at once and with a fresh count.
--
-- KEYS  1 stream   2 retry sorted set   3 dead letter stream
-- ARGV  for each letter its id in the dead letter stream and the entry id of its signal
-- Returns how many; letters that are gone, and those whose entry was trimmed, are passed over.

require_rights(KEYS[2], { 'zadd' })
redis.call('ZCARD', KEYS[2])
local replayed = 0
for place = 1, #ARGV, 2 do
  local letter, entry = ARGV[place], ARGV[place + 1]
  if #redis.call('XRANGE', KEYS[1], entry, entry) > 0 and redis.call('XDEL', KEYS[3], letter) == 1 then
    redis.call('ZADD', KEYS[2], 0, entry .. ' 0')
    replayed = replayed + 1
  end
end
return replayed

-- Append one entry to the channel of a workflow, unless a later segment has taken the channel over.
--
-- KEYS  1 frames   2 newest
-- ARGV  1 run   2 attempt   3 whether this segment has still to claim the channel (the server did not answer then), 1 or 0
--       4 sequence   5 index   6 total   7 type   8 part
--       9 most entries   10 most bytes   11 seconds until both keys expire, anew with every entry
-- Returns the id of the entry; nothing when the channel belongs to another segment by now.

local run, attempt = ARGV[1], ARGV[2]
local held = redis.call('HMGET', KEYS[2], 'run', 'attempt', 'bytes', 'begun')
local ours = held[1] == run and held[2] == attempt

-- Attempts order the segments of one run. A segment of another run takes over when it begins.
local later = held[1] == run and not ours and tonumber(held[2]) > tonumber(attempt)
if later or (held[1] and held[1] ~= run and ARGV[3] == '0') then
  return false
end

require_rights(KEYS[1], { 'xadd', 'hset', 'expire', 'xrange', 'xdel' })
local bytes = (tonumber(held[3]) or 0) + #ARGV[8]
local entry = redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[9], '*',
  'o', string.format('%.0f', bytes), 'r', run, 'a', attempt, 'n', ARGV[4], 'f', ARGV[5], 'm', ARGV[6], 't', ARGV[7], 'p', ARGV[8])
if not ours or held[4] ~= '1' then
  redis.call('HSET', KEYS[2], 'run', run, 'attempt', attempt, 'first', entry, 'begun', '1')
end
redis.call('HSET', KEYS[2], 'bytes', string.format('%.0f', bytes))
redis.call('EXPIRE', KEYS[1], ARGV[11])
redis.call('EXPIRE', KEYS[2], ARGV[11])

-- Every entry says how many bytes the channel had got with it, so the oldest one tells how many it holds. One that does not
-- say it is another program's, and counts for nothing.
local limit = tonumber(ARGV[10])
while bytes > limit do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local got, part = tonumber(oldest[2][2]), oldest[2][16]
  if oldest[1] == entry or (got and part and bytes - got + #part <= limit) then
    break
  end
  redis.call('XDEL', KEYS[1], oldest[1])
end
return entry

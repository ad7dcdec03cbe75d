-- The newest entry of each stream, all at one moment.
--
-- KEYS  the streams
-- Returns for each stream the id of its newest entry, or an empty text when it has none.

local ends = {}
for place, stream in ipairs(KEYS) do
  local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  ends[place] = newest and newest[1] or ''
end
return ends

-- Put signals on a stream, each id once.
--
-- KEYS  1 stream   2.. for each signal the key that remembers its id
-- ARGV  1 most entries   2 retention in seconds   3 window in seconds   then for each signal its id, topic, payload
-- Returns for each signal {entry id} when it is new or the first entry was trimmed, {entry id, topic, payload} of the first
-- entry otherwise.

local retention, window = tonumber(ARGV[2]), ARGV[3]

local function field(entry, name)
  for place = 1, #entry[2], 2 do
    if entry[2][place] == name then
      return entry[2][place + 1]
    end
  end
end

local written = {}
for place = 2, #KEYS do
  local first_argument = 4 + 3 * (place - 2)
  local id, topic, payload = ARGV[first_argument], ARGV[first_argument + 1], ARGV[first_argument + 2]
  local known = redis.call('GET', KEYS[place])
  if known then
    redis.call('EXPIRE', KEYS[place], window)
    local held = redis.call('XRANGE', KEYS[1], known, known)[1]
    written[place - 1] = held and { known, field(held, 't'), field(held, 'p') } or { known }
  else
    local entry = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'i', id, 't', topic, 'p', payload)
    redis.call('SET', KEYS[place], entry, 'EX', window)
    written[place - 1] = { entry }
  end
end
-- The window being longer, an id that was forgotten has its old entry trimmed in the call that adds its new one. Trimming comes
-- last, since a server that is full refuses only the first write of a script: that must be the one that needs memory.
redis.call('XTRIM', KEYS[1], 'MINID', string.format('%d', (redis.call('TIME')[1] - retention) * 1000))
return written

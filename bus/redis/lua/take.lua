-- Take what a consumer may handle now. Everything taken stands in the group's pending list under this consumer's name.
--
-- KEYS  1 stream   2 retry sorted set
-- ARGV  1 group   2 consumer   3 most deliveries of each kind   4 takeover time in milliseconds   5 takeover cursor
--       6 where a new group starts   7 entry that this consumer knows the group to have reached, or ''
--       8 how often to look for an abandoned delivery, 0 for not at all
-- Returns {deliveries, an abandoned delivery or {}, lost, next takeover cursor, entry the group has reached}; a delivery is
-- {entry id, attempt, fields}.

local stream, group, consumer, limit = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

require_rights(stream, { 'xclaim', 'xreadgroup', 'xautoclaim', 'xpending', 'xinfo|groups' })
require_rights(KEYS[2], { 'zrem' })

local function group_reached()
  if redis.call('EXISTS', stream) == 1 then
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      local values = {}
      for place = 1, #info, 2 do
        values[info[place]] = info[place + 1]
      end
      if values['name'] == group then
        return values['last-delivered-id']
      end
    end
  end
end

local function numbers(entry)
  local milliseconds, sequence = string.match(entry, '^(%d+)-(%d+)$')
  return tonumber(milliseconds), tonumber(sequence)
end

local function is_before(entry, other)
  local a, b = numbers(entry)
  local c, d = numbers(other)
  return a < c or (a == c and b < d)
end

-- A group that is gone was reached by this consumer before: it goes on there. A stream that ends before that place is
-- another one (its server lost its data, or has an older copy): all of it is new.
local function starting_place()
  if ARGV[7] == '' then
    return ARGV[6]
  end
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  return (last and not is_before(last[1], ARGV[7])) and ARGV[7] or '0-0'
end

if not group_reached() then
  redis.call('XGROUP', 'CREATE', stream, group, starting_place(), 'MKSTREAM')
end

-- Servers before 7.2 make a consumer only when there is something to read: make it known as soon as it is there.
-- A full server refuses that, and nothing is lost by it.
redis.pcall('XGROUP', 'CREATECONSUMER', stream, group, consumer)

local deliveries, abandoned, lost = {}, {}, 0
local function deliver(entry, attempt)
  deliveries[#deliveries + 1] = { entry[1], attempt, entry[2] }
end

local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, limit)) do
  local entry, attempts = string.match(member, '^(%S+) (%d+)$')
  redis.call('ZREM', KEYS[2], member)
  local attempt = (attempts or 0) + 1
  local claimed = entry and redis.call('XCLAIM', stream, group, consumer, 0, entry, 'RETRYCOUNT', attempt, 'FORCE') or {}
  if claimed[1] then
    deliver(claimed[1], attempt)
  else
    lost = lost + 1
  end
end

local unread = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', limit, 'STREAMS', stream, '>')
if unread and unread[1] then
  for _, entry in ipairs(unread[1][2]) do
    deliver(entry, 1)
  end
end

-- One look covers ten entries of the pending list; the cursor is kept, so that the next take looks on from there.
local cursor, looks = ARGV[5], tonumber(ARGV[8])
while looks > 0 do
  local found = redis.call('XAUTOCLAIM', stream, group, consumer, ARGV[4], cursor, 'COUNT', 1)
  cursor, lost, looks = found[1], lost + #found[3], looks - 1
  local entry = found[2][1]
  if entry then
    abandoned = { entry[1], redis.call('XPENDING', stream, group, entry[1], entry[1], 1)[1][4], entry[2] }
  end
  if entry or cursor == '0-0' then
    break
  end
end

return { deliveries, abandoned, lost, cursor, group_reached() }

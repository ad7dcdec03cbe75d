-- Put signals on a stream, each id once, and keep the stream within its bounds.
--
-- KEYS  1 stream   2.. for each signal the key that remembers its id
-- ARGV  1 entries   2 ceiling   3 retention in seconds   4 window in seconds   then for each signal its id, topic, payload
-- Returns {signals, warnings}. For each signal {entry id} when it is new or the first entry was trimmed, {entry id, topic,
-- payload} of the first entry otherwise. A warning is {group, 1 when entries were dropped that the group still needs, or 0 when
-- they are held beyond the bounds for its sake}.
--
-- The retry sets of the groups are read too: they are known by name only, and share the slot of the stream.

local stream = KEYS[1]

local function field(entry, name)
  for place = 1, #entry[2], 2 do
    if entry[2][place] == name then
      return entry[2][place + 1]
    end
  end
end

require_rights(stream, { 'xadd', 'xlen', 'xrange', 'xtrim', 'xpending', 'xinfo|groups', 'zrange' })
require_rights(KEYS[2], { 'get', 'set', 'expire' })
local written, newest, added = {}, nil, 0
for place = 2, #KEYS do
  local first = 5 + 3 * (place - 2)
  local known = redis.call('GET', KEYS[place])
  if known then
    redis.call('EXPIRE', KEYS[place], ARGV[4])
    local held = redis.call('XRANGE', stream, known, known)[1]
    written[place - 1] = held and { known, field(held, 't'), field(held, 'p') } or { known }
  else
    newest = redis.call('XADD', stream, '*', 'i', ARGV[first], 't', ARGV[first + 1], 'p', ARGV[first + 2])
    redis.call('SET', KEYS[place], newest, 'EX', ARGV[4])
    added = added + 1
    written[place - 1] = { newest }
  end
end

local entries, ceiling = tonumber(ARGV[1]), tonumber(ARGV[2])
local PASS, SLACK, EVERY, RETRIES = 200, 100, 64, 1000
local now = newest and string.match(newest, '^%d+') or redis.call('TIME')[1] * 1000
local oldest_kept = string.format('(%d-0', now - ARGV[3] * 1000)
local length = redis.call('XLEN', stream)
local old = redis.call('XRANGE', stream, '-', oldest_kept, 'COUNT', PASS)
if #old == 0 and length <= entries + SLACK then
  return { written, {} }
end

-- Trimming comes last, since a server that is full refuses only the first write of a script: that must be the one that needs
-- memory. What is dropped is named by its newest entry, at most PASS of them at a time, so that no call takes long.
local function numbers(entry)
  local milliseconds, sequence = string.match(entry, '^(%d+)-(%d+)')
  return tonumber(milliseconds), tonumber(sequence)
end

local function is_before(entry, other)
  local a, b = numbers(entry)
  local c, d = numbers(other)
  return a < c or (a == c and b < d)
end

local function needs(name, reached, last)
  if is_before(reached, last) then
    return true
  end
  local held = redis.call('XPENDING', stream, name)
  if held[1] > 0 and not is_before(last, held[2]) then
    return true
  end
  local retries = redis.pcall('ZRANGE', stream .. ':group:' .. name .. ':retry', 0, RETRIES - 1)
  if retries.err then
    return true -- on its way to another node of a Cluster, or another program's: nobody knows, and all is written by now
  end
  for _, member in ipairs(retries) do
    if not is_before(last, member) then
      return true
    end
  end
  return false
end

-- The groups that still need an entry up to this one.
local function groups_behind(last)
  local behind = {}
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local values = {}
    for place = 1, #info, 2 do
      values[info[place]] = info[place + 1]
    end
    if needs(values['name'], values['last-delivered-id'], last) then
      behind[#behind + 1] = values['name']
    end
  end
  return behind
end

local dropped_for, held_for = {}, {}
local function drop(last)
  for _, name in ipairs(groups_behind(last)) do
    dropped_for[name] = true
  end
  local milliseconds, sequence = string.match(last, '^(%d+)-(%d+)$')
  redis.call('XTRIM', stream, 'MINID', milliseconds .. '-' .. string.format('%d', sequence + 1))
end

while #old > 0 do
  drop(old[#old][1])
  old = #old == PASS and redis.call('XRANGE', stream, '-', oldest_kept, 'COUNT', PASS) or {}
end

length = redis.call('XLEN', stream)
-- While a slow group holds entries beyond the bounds, not every call looks whether it still does.
local looks = length <= ceiling and length % EVERY < added or length > ceiling
while length > entries + SLACK and looks do
  local surplus = redis.call('XRANGE', stream, '-', '+', 'COUNT', math.min(length - entries, PASS))
  local last = surplus[#surplus][1]
  local behind = length <= ceiling and groups_behind(last) or {}
  if #behind > 0 then
    for _, name in ipairs(behind) do
      held_for[name] = true
    end
    break
  end
  drop(last)
  length = redis.call('XLEN', stream)
end

local warnings = {}
for name in pairs(dropped_for) do
  warnings[#warnings + 1] = { name, 1 }
end
for name in pairs(held_for) do
  if not dropped_for[name] then
    warnings[#warnings + 1] = { name, 0 }
  end
end
return { written, warnings }

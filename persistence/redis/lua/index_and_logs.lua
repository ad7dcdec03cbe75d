-- Shared by the three intents: the partition's index entry and the logs, in the same atomic operation as its records.
--
-- KEYS  1 partition hash   2 due sorted set   3 entries hash   4 lookup sorted set   5.. log streams, one per appended entry

-- A replica is behind: what it holds says nothing of a condition. This writes nothing, and is refused where nothing can be
-- written, with the server's own words for why.
local function require_primary()
  redis.call('PERSIST', KEYS[1])
end

local function lost(held)
  require_primary()
  return held
end

-- A script that fails half-way is not undone. So whatever can be refused is met before the first write: a right that is
-- missing, a key of another program, and, while a Cluster moves the slot, a key that is missing here. For the same reason a key that may have become
-- empty, and so have vanished, is not touched again.
local function require_rights()
  if not redis.acl_check_cmd then
    return -- not a real server
  end
  for _, command in ipairs({ 'HSET', 'HDEL', 'DEL', 'ZADD', 'ZREM', 'XADD', 'PERSIST' }) do
    if not redis.acl_check_cmd(command, KEYS[1]) then
      error({ err = 'NOPERM nothing was written, missing: ' .. command })
    end
  end
end

local function require_types()
  require_rights()
  redis.call('ZCARD', KEYS[2])
  redis.call('HLEN', KEYS[3])
  redis.call('ZCARD', KEYS[4])
  for place = 5, #KEYS do
    redis.call('XLEN', KEYS[place])
  end
end

local function lookups(partition, entry)
  local members = { 'p:\0' .. partition, 'n:' .. entry.n .. '\0' .. partition, 's:' .. entry.s .. '\0' .. partition }
  if entry.t and entry.t ~= cjson.null then
    members[4] = 't:' .. entry.t .. '\0' .. partition
  end
  if entry.a then
    members[#members + 1] = 'a:' .. entry.a .. '\0' .. partition
  end
  return members
end

-- What finds the partition now, as a set; nothing where there is no entry. One that cannot be read finds nothing, and must not
-- keep the partition from getting another one.
local function lookups_now(partition)
  local entry = redis.call('HGET', KEYS[3], partition)
  if not entry then
    return nil
  end
  local found = {}
  local readable, members = pcall(function()
    return lookups(partition, cjson.decode(entry))
  end)
  for _, member in ipairs(readable and members or {}) do
    found[member] = true
  end
  return found
end

local function forget_lookups(members)
  for member in pairs(members) do
    redis.call('ZREM', KEYS[4], member)
  end
end

local function forget_entry(partition)
  local old = lookups_now(partition)
  if not old then
    return
  end
  forget_lookups(old)
  redis.call('ZREM', KEYS[2], partition)
  redis.call('HDEL', KEYS[3], partition)
end

-- entry: '' keeps the entry as it is; due: '' for no due time. Both are read before the first write: what cannot be is an error
-- that has changed nothing.
local function set_entry(partition, entry, due)
  if entry == '' then
    return
  end
  local new, old = lookups(partition, cjson.decode(entry)), lookups_now(partition) or {}
  redis.call('HSET', KEYS[3], partition, entry)
  for _, member in ipairs(new) do
    redis.call('ZADD', KEYS[4], 0, member)
    old[member] = nil
  end
  forget_lookups(old)
  if due ~= '' then
    redis.call('ZADD', KEYS[2], due, partition)
  else
    redis.call('ZREM', KEYS[2], partition)
  end
end

-- Entries stand in ARGV from `first` on, one per log key; streams are kept near `limit` entries.
local function append_logs(first, limit)
  for place = 5, #KEYS do
    redis.call('XADD', KEYS[place], 'MAXLEN', '~', limit, '*', 'd', ARGV[first + place - 5])
  end
end

-- Records stand in ARGV as key, value, key, value; in portions, since Lua cannot unpack a table of any size.
local function write_records(first, count)
  local last = first + 2 * count - 1
  for start = first, last, 2000 do
    redis.call('HSET', KEYS[1], unpack(ARGV, start, math.min(start + 1999, last)))
  end
end

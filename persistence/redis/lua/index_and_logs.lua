-- Shared by the three intents: the partition's index entry and the logs, in the same atomic operation as its records.
--
-- KEYS  1 partition hash   2 due sorted set   3 entries hash   4 lookup sorted set   5.. log streams, one per appended entry

-- A script that fails half-way is not undone, so a key of another program must raise before the first write.
local function require_types()
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
  return members
end

local function forget_entry(partition)
  local old = redis.call('HGET', KEYS[3], partition)
  if old then
    redis.call('ZREM', KEYS[4], unpack(lookups(partition, cjson.decode(old))))
    redis.call('ZREM', KEYS[2], partition)
    redis.call('HDEL', KEYS[3], partition)
  end
end

-- entry: '' keeps the entry as it is; due: '' for no due time.
local function set_entry(partition, entry, due)
  if entry == '' then
    return
  end
  forget_entry(partition)
  redis.call('HSET', KEYS[3], partition, entry)
  for _, member in ipairs(lookups(partition, cjson.decode(entry))) do
    redis.call('ZADD', KEYS[4], 0, member)
  end
  if due ~= '' then
    redis.call('ZADD', KEYS[2], due, partition)
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

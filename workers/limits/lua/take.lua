-- Take a slot of each limit, or none.
--
-- KEYS  the limits' sorted sets: holder -> end of its lease (milliseconds)
-- ARGV  1 holder   2 length of the lease (milliseconds)   3.. the number of slots of each limit
-- Returns -1 when taken, otherwise the milliseconds until the next lease of a full limit ends.
--
-- Of a holder "run/execution" only the run counts: all its executions share one slot.

local function run_of(holder)
  return string.match(holder, '^(.*)/[^/]*$') or holder
end

-- Whether a limit has no slot for this run, live holders only.
local function is_full(key, limit)
  local runs, number = {}, 0
  for _, holder in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    local run = run_of(holder)
    if not runs[run] then
      runs[run], number = true, number + 1
    end
  end
  return not runs[run_of(ARGV[1])] and number >= tonumber(limit)
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local wait = -1
for place, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if is_full(key, ARGV[place + 2]) then
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    wait = math.max(wait, first[2] and first[2] - now or 0)
  end
end
if wait < 0 then
  for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, now + ARGV[2], ARGV[1])
  end
end
return wait

-- Create a partition's condition, once.
--
-- ARGV  1 partition   2 condition key   3 initial value   4 entry JSON or ''   5 due or ''   6 log limit
--       7 number of records, then the records, then the log entries. The condition is written last, so that it wins.
-- Returns 1 when written, else what the condition holds.

local held = redis.call('HGET', KEYS[1], ARGV[2])
if held then
  return lost(held)
end
local count = tonumber(ARGV[7])
require_types()
set_entry(ARGV[1], ARGV[4], ARGV[5])
write_records(8, count)
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
append_logs(8 + 2 * count, ARGV[6])
return 1

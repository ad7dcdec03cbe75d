-- Delete a whole partition and its index entry while its condition holds the expected bytes.
--
-- ARGV  1 partition   2 condition key   3 expected value   4 log limit, then the log entries
-- Returns 1 when deleted, else what the condition holds: other bytes, or nothing.

local held = redis.call('HGET', KEYS[1], ARGV[2])
if held ~= ARGV[3] then
  return lost(held)
end
require_types()
forget_entry(ARGV[1])
redis.call('DEL', KEYS[1])
append_logs(5, ARGV[4])
return 1

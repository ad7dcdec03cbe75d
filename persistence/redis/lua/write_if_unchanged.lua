-- Change a partition while its condition holds the expected bytes.
--
-- ARGV  1 partition   2 condition key   3 expected value   4 entry JSON or ''   5 due or ''   6 log limit
--       7 number of records   8 number of keys to delete, then records, then other keys to delete, then the log entries
-- Returns 1 when written, else what the condition holds: other bytes, or nothing.

local held = redis.call('HGET', KEYS[1], ARGV[2])
if held ~= ARGV[3] then
  return lost(held)
end
local written, deleted = tonumber(ARGV[7]), tonumber(ARGV[8])
local first_deleted = 9 + 2 * written
require_types()
set_entry(ARGV[1], ARGV[4], ARGV[5])
write_records(9, written)
append_logs(first_deleted + deleted, ARGV[6])
-- For the sake of a call that writes nothing. Not earlier, since it is the first write that a full server refuses.
require_primary()
for place = first_deleted, first_deleted + deleted - 1 do
  redis.call('HDEL', KEYS[1], ARGV[place]) -- after the last of these the partition may have vanished
end
return 1

-- Change a partition while its condition holds the expected bytes.
--
-- ARGV  1 partition   2 condition key   3 expected value   4 entry JSON or ''   5 due or ''   6 log limit
--       7 number of records   8 number of keys to delete, then records, then keys to delete, then the log entries
-- Returns 1 when written, 0 when the condition was absent or held other bytes.

if redis.call('HGET', KEYS[1], ARGV[2]) ~= ARGV[3] then
  return 0
end
local written, deleted = tonumber(ARGV[7]), tonumber(ARGV[8])
local first_deleted = 9 + 2 * written
require_types()
set_entry(ARGV[1], ARGV[4], ARGV[5])
for place = first_deleted, first_deleted + deleted - 1 do
  redis.call('HDEL', KEYS[1], ARGV[place])
end
write_records(9, written)
append_logs(first_deleted + deleted, ARGV[6])
return 1

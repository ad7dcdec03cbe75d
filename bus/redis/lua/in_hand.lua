-- Shared by what ends a delivery: whether it is still in the hands of this consumer. Not where the group is gone.
--
-- KEYS  1 stream
-- ARGV  1 group   2 consumer   3 entry id

local function in_hand()
  local held = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)
  return not held.err and held[1] and held[1][2] == ARGV[2]
end

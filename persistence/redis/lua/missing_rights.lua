-- Which commands the user of this connection may not call on a key. Reads the user's rights and no key at all, so that any
-- node of a Cluster can say it of itself.
--
-- ARGV  1 a key, then the names of commands, as in ACL SETUSER: hget, xgroup|create
-- Returns the names that are refused.

local refused = {}
for place = 2, #ARGV do
  local name, sub = string.match(ARGV[place], '^([^|]+)|?(.*)$')
  local known, allowed
  if sub == '' then
    known, allowed = pcall(redis.acl_check_cmd, name, ARGV[1])
  else
    known, allowed = pcall(redis.acl_check_cmd, name, sub, ARGV[1])
  end
  if known and not allowed then
    refused[#refused + 1] = ARGV[place]
  end
end
return refused

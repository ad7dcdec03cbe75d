-- Shared by the scripts that write twice. One that fails half-way is not undone: so whatever can be refused is met before the
-- first write, a right that is missing by this, and a key of another program by a read of it.
--
-- commands  as in ACL SETUSER: xadd, xinfo|groups

local function require_rights(key, commands)
  if not redis.acl_check_cmd then
    return -- not a real server
  end
  for _, command in ipairs(commands) do
    local name, sub = string.match(command, '^([^|]+)|?(.*)$')
    local allowed
    if sub == '' then
      allowed = redis.acl_check_cmd(name, key)
    else
      allowed = redis.acl_check_cmd(name, sub, key)
    end
    if not allowed then
      error({ err = 'NOPERM nothing was written, missing: ' .. command })
    end
  end
end

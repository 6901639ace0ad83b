-- Writes on the word into one session, and tells the messages of the events that came, in their order.
local function tell(what)
  io.stdout:write(vim.json.encode(what) .. '\n')
  io.stdout:flush()
end
local session, own = vim.env.SESSION, tonumber(vim.env.OWN)
local client

local function write(n)
  if n == own then
    return
  end
  local message = { id = 'neovim-' .. n, type = 'user', content = 'neovim ' .. n }
  vim.lsp.get_client_by_id(client).request('messages/append', { session = session, messages = { message } }, function(err)
    if err then
      tell({ failed = err })
    end
    write(n + 1)
  end)
end

client = vim.lsp.start_client({
  name = 'craftd',
  cmd = vim.json.decode(vim.env.COMMAND),
  root_dir = vim.env.ROOT,
  handlers = {
    ['messages/didAppend'] = function(_, params)
      for _, message in ipairs(params.messages) do
        tell({ content = message.content })
      end
    end,
    ['sessions/didChange'] = function(_, params)
      if params.patch.set and params.patch.set.name == 'Go' then
        write(0)
      end
    end,
  },
  on_init = function(c)
    c.request('events/subscribe', { workspace = 'notes' }, function(err)
      tell(err and { failed = err } or 'ready')
    end)
  end,
})

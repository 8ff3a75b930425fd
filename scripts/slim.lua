-- Takes the names of local variables and upvalues out of Lua 5.4 bytecode, as
-- `string.dump` makes it, and leaves all other debug information; and gives the
-- tables of modules their size. The format is ldump.c's:
-- a header, then functions, each with its constants and nested functions; sizes
-- are big-endian groups of 7 bits, the last one marked by its high bit.
local HEADER = 4 + 1 + 1 + 6 + 3 + 8 + 8 -- signature .. LUAC_NUM, then upvalues

-- Instructions: opcode (7 bits), A (8), k (1), B (8), C (8). B of NEWTABLE is one
-- more than the logarithm of the number of fields, or 0.
local SETFIELD, NEWTABLE = 18, 19

return function(code)
  assert(code:sub(1, 5) == "\27Lua\x54", "not bytecode of Lua 5.4")
  local out, from, at = {}, 1, 1

  local function size()
    local value = 0
    repeat
      local byte = code:byte(at)
      at = at + 1
      value = value << 7 | byte & 0x7f
    until byte & 0x80 ~= 0
    return value
  end

  -- Puts other bytes of the same length into the code.
  local function replace(place, bytes)
    code = code:sub(1, place - 1) .. bytes .. code:sub(place + #bytes)
  end

  local function skip(n)
    at = at + n
  end

  local function text()
    local n = size()
    skip(n > 0 and n - 1 or 0)
  end

  local function constants()
    for _ = 1, size() do
      local kind = code:byte(at)
      skip(1)
      if kind == 0x03 or kind == 0x13 then -- an integer, a float
        skip(8)
      elseif kind == 0x04 or kind == 0x14 then -- a short string, a long one
        text()
      end
    end
  end

  -- Leaves out a list of names, each with some numbers.
  local function names(numbers)
    out[#out + 1] = code:sub(from, at - 1)
    for _ = 1, size() do
      text()
      for _ = 1, numbers do size() end
    end
    out[#out + 1] = "\x80" -- none
    from = at
  end

  -- Gives the tables of a chunk's own code the size that its assignments of fields
  -- will need: a module's table would grow five times while it is filled.
  local function presize(from_instruction, count)
    local fields = {}
    for i = count - 1, 0, -1 do
      local place = from_instruction + 4 * i
      local word = ("<I4"):unpack(code, place)
      local opcode, register = word & 0x7f, word >> 7 & 0xff
      if opcode == SETFIELD then
        fields[register] = (fields[register] or 0) + 1
      elseif opcode == NEWTABLE then
        local wanted, given = fields[register] or 0, word >> 16 & 0xff
        fields[register] = nil
        local needed = wanted > 1 and math.ceil(math.log(wanted, 2)) + 1 or 0
        if needed > given then
          replace(place, ("<I4"):pack(word & 0xff00ffff | needed << 16))
        end
      end
    end
  end

  local function func(nested)
    text() -- source
    size() -- first line
    size() -- last line
    skip(3) -- parameters, vararg, stack
    local instructions = size()
    if not nested then presize(at, instructions) end
    skip(4 * instructions)
    constants()
    local upvalues = size()
    skip(3 * upvalues)
    for _ = 1, size() do
      func(true)
    end
    local lines = size()
    skip(lines)
    for _ = 1, size() do -- absolute lines
      size()
      size()
    end
    names(2) -- locals, with where they begin and end
    names(0) -- upvalues
  end

  skip(HEADER + 1)
  func()
  assert(at == #code + 1, "bytecode ends where it should not")
  out[#out + 1] = code:sub(from)
  return table.concat(out)
end

--- What the host costs a program that turns it, beside bare libuv: the tool `embed` measures.
---
---     lua5.4 tests/bench/embed.lua TOOLS ROUNDS    (scripts/bench.sh embed does)
local tools, rounds = assert(arg[1]), tonumber(arg[2]) or 40
local ok = os.execute(("%s/embed %d"):format(tools, rounds))
os.exit(ok and 0 or 1)

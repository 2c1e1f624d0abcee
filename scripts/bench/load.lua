-- Asks for random paths from a file: wrk -s load.lua URL -- FILE. Prints requests, failed ones and microseconds.
local requests = {}

function init(arguments)
  math.randomseed(1)
  for path in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
end

function request()
  return requests[math.random(#requests)]
end

function done(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("result %d %d %d\n", summary.requests, failed, summary.duration))
end

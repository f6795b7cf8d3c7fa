// Written by `clawmesh attach copilot`; `clawmesh detach copilot` takes it out.
//
// As long as a session is open, a program waits for messages of the mesh. When something is unread it ends, having said how much
// and from whom, and the session begins a turn with that: a count and references of agents, never what others wrote.
import { spawn } from "node:child_process"
import { joinSession } from "@github/copilot-sdk/extension"

const COMMAND = []

const session = await joinSession({})
let waiting

const wait = () => {
  if (waiting) return
  let said = ""
  const program = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "ignore", "pipe"] })
  waiting = program
  program.stderr.on("data", (bytes) => (said += bytes))
  program.stdin.on("error", () => {})
  program.stdin.end(JSON.stringify({ session_id: session.sessionId }))
  program.on("error", () => (waiting = undefined))
  program.on("close", (code) => {
    waiting = undefined
    if (code !== 2 || !said.trim()) return
    session.send({ prompt: said.trim() }).then(wait, () => {})
  })
}

const end = () => {
  waiting?.kill()
  process.exit(0)
}
process.on("SIGTERM", end)
process.on("SIGINT", end)
process.on("exit", () => waiting?.kill())

// A program that ended without news (its node was away for good, another session of the same agent waits) is started again.
session.on("session.idle", wait)
wait()

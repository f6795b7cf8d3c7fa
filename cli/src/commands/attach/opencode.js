// Written by `clawmesh attach opencode`; `clawmesh detach opencode` takes it out.
//
// While a session is idle, a program waits for messages of the mesh. When something is unread it ends, having said how much and
// from whom, and the session begins a turn with that: a count and references of agents, never what others wrote.
import { spawn } from "node:child_process"

const COMMAND = []

export const Clawmesh = async ({ client, directory }) => {
  /** The program that waits, and the session that is told: the one that was idle last. */
  let waiting
  let session

  const end = () => waiting?.kill()
  process.on("exit", end)

  const tell = async (text) => {
    // A session that was deleted meanwhile hears nothing; the message is in the inbox.
    await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text }] } }).catch(() => {})
  }

  const wait = () => {
    if (waiting) return
    let said = ""
    const program = spawn(COMMAND[0], COMMAND.slice(1), { cwd: directory, stdio: ["pipe", "ignore", "pipe"] })
    waiting = program
    program.stderr.on("data", (bytes) => (said += bytes))
    program.stdin.on("error", () => {})
    program.stdin.end(JSON.stringify({ session_id: session }))
    program.on("error", () => (waiting = undefined))
    program.on("close", (code) => {
      waiting = undefined
      if (code === 2 && said.trim()) tell(said.trim())
    })
  }

  return {
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const id = event.properties.sessionID
      // Sessions of subagents end with their task.
      const found = await client.session.get({ path: { id } }).catch(() => undefined)
      if (!found?.data || found.data.parentID) return
      session = id
      wait()
    },
  }
}

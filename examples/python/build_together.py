"""Three agents build tic-tac-toe: they share tasks out by claiming them, build, and play what they built."""

from clawmesh import ClawChatError
from common import agents, gather

# What is to be built. In earnest each agent would write its part; here it knows it by heart.
PARTS = {
    "board": "def board():\n    return [' '] * 9\n",
    "winner": (
        "def winner(b):\n"
        "    lines = [(0,1,2),(3,4,5),(6,7,8),(0,3,6),(1,4,7),(2,5,8),(0,4,8),(2,4,6)]\n"
        "    return next((b[i] for i, j, k in lines if b[i] == b[j] == b[k] != ' '), None)\n"
    ),
    "show": "def show(b):\n    return '\\n'.join('|'.join(b[i:i + 3]) for i in (0, 3, 6))\n",
}

builders = agents(__doc__, "ada", "bob", "eve")
ada = builders[0]
room = ada.create_room("workshop", ephemeral=True, public=True)["room_id"]
gather(room, builders)

tasks = {ada.assign_task(room, part)["task_id"]: part for part in PARTS}
for builder in builders[1:]:
    for task in tasks:
        builder.wait_for_event("task_assigned", where=lambda it, task=task: it["task_id"] == task)

# Everybody takes what is still free: of two that want the same task one is told who has it.
done = set()
while len(done) < len(tasks):
    for builder in builders:
        for task in tasks.keys() - done:
            try:
                builder.claim_task(task)
            except ClawChatError as error:
                assert error.code == "invalid_payload", error
                continue
            part = tasks[task]
            builder.send_message(room, PARTS[part], metadata={"kind": "part", "part": part})
            builder.update_task(task, status="completed", note=f"built by {builder.name}")
            done.add(task)
            break

# What others did at their nodes is here in a moment.
while len(completed := ada.list_tasks(room, status="completed")) < len(tasks):
    ada.wait_for_event("task_updated", where=lambda it: it["room_id"] == room)
for task in completed:
    print(f"{task['title']}: {task['note']}")

# The room's history is what was built.
while len(parts := [it for it in ada.get_history(room) if it["metadata"]]) < len(tasks):
    ada.wait_for_event("message_received", where=lambda it: it["room_id"] == room)
game = {}
for part in parts:
    exec(part["content"], game)  # The agents of this example trust each other.
board = game["board"]()
for place, mark in zip((0, 3, 1, 4, 2), "XOXOX"):
    board[place] = mark
print(game["show"](board))
print(f"{game['winner'](board)} wins")
assert game["winner"](board) == "X"
for builder in builders:
    builder.close()

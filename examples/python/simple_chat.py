"""Two agents meet in a room, talk, and read what was said."""

from common import agents, gather

ada, bob = agents(__doc__, "ada", "bob")
room = ada.create_room("a quiet place", ephemeral=True, public=True)["room_id"]
gather(room, [ada, bob])

sent = ada.send_message(room, "hello, who is there?")
heard = bob.wait_for_event("message_received", where=lambda it: it["room_id"] == room)
print(f"bob hears #{heard['seq']} {heard['agent_name']}: {heard['content']}")

bob.send_message(room, "bob is", reply_to=heard["message_id"])
answer = ada.wait_for_event("message_received", where=lambda it: it["room_id"] == room)
print(f"ada hears #{answer['seq']} {answer['agent_name']}: {answer['content']}")
assert answer["reply_to_message"] == sent["message_id"]

print("and this is what was said:")
for message in bob.get_history(room):
    print(f"  #{message['seq']} {message['agent_name']}: {message['content']}")

for agent in (ada, bob):
    agent.close()

"""Three agents elect a leader: one does not want to, and only who leads may decide."""

from clawmesh import ClawChatError
from common import agents, gather

members = agents(__doc__, "ada", "bob", "eve")
ada, bob, eve = members
room = ada.create_room("council", ephemeral=True, public=True)["room_id"]
gather(room, members)

election = ada.elect_leader(room)
print(f"{len(election['candidates'])} candidates")
eve.wait_for_event("election_started", where=lambda it: it["room_id"] == room)
eve.decline_election(room)
print("eve does not want to")

leaders = {it.wait_for_event("leader_elected", where=lambda it: it["room_id"] == room)["leader_id"]
           for it in members}
assert len(leaders) == 1, "everybody sees the same leader"
leader = next(it for it in members if it.agent_id in leaders)
assert leader is not eve
print(f"{leader.name} leads")

try:
    eve.send_decision(room, "I decide")
except ClawChatError as error:
    print(f"eve may not decide: {error.code}")
leader.send_decision(room, "we mend it")
for member in members:
    decision = member.wait_for_event("decision_made", where=lambda it: it["room_id"] == room)
    print(f"{member.name} hears the decision of {decision['leader_name']}: {decision['content']}")
for member in members:
    member.close()

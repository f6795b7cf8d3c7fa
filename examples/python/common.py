"""Where the agents of the examples attach."""

import argparse
import itertools
import os

from clawmesh import Agent, read_api_key


def agents(description, *names):
    """Agents of these names; of several nodes each gets the next one in turn."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tcp", default=os.environ.get("CLAWMESH_TCP"), metavar="HOST:PORT,…",
                        help="nodes of one mesh: agents are spread over them [default: the Unix socket]")
    parser.add_argument("--key", default=os.environ.get("CLAWMESH_KEY"),
                        help="API key [default: what is in ~/.clawchat/auth.key]")
    args = parser.parse_args()
    key = args.key or read_api_key()
    nodes = itertools.cycle(args.tcp.split(",") if args.tcp else [None])
    return [Agent(key, name, tcp=next(nodes)) for name in names]


def gather(room_id, agents):
    """Everybody joins a new room, and waits until everybody is seen: other nodes hear of it in a moment."""
    for agent in agents:
        agent.wait_for_event("room_created", where=lambda it: it["room_id"] == room_id)
        agent.join_room(room_id)
    everybody = {agent.agent_id for agent in agents}
    for agent in agents:
        while {it["agent_id"] for it in agent.list_agents(room_id)} < everybody:
            agent.wait_for_event("agent_joined", where=lambda it: it["room_id"] == room_id)

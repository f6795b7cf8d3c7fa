//! The seam: all that a dialect sees of a node, in no dialect's words.
//!
//! A dialect turns frames into calls, answers and events into frames, and refusals into its own codes
//! and texts. Between the two stand:
//!
//! - [`call`]: one struct for each thing that a client can ask. A call names the type of its answer
//!   ([`Call::Answer`](call::Call::Answer)), so that no dialect joins a question and an answer at run time.
//!   A dialect asks with a continuation: `seat.ask(call, |seat, answer| …)`. Continuations can ask
//!   again, and many can be under way on one connection.
//! - [`answer`]: the types of answers, and the one table that reads them out of the core's outcomes.
//! - [`refusal`]: why a client does not get its answer, with the values that a text needs.
//! - [`event`]: news for clients, and [`Voice`](event::Voice), which is a dialect's way to write it. An
//!   event is written once for each voice and shared by all readers of that voice.
//!
//! How dialects use it:
//!
//! - *Many calls in flight* (JSON-RPC, `req` and `res`): each continuation holds the id of its request and replies in any
//!   order. A reply may come after further calls, or a frame at a time ([`Seat::reply`](crate::session::seat::Seat::reply)).
//! - *Clients that choose a form of events*: one voice for each form; [`Seat::speak`](crate::session::seat::Seat::speak)
//!   sets it before the agent is attached.
//! - *Agents that change their dialect*: nothing that waits for an agent is bytes. Messages are read again from the
//!   delivery log, notices are kept as events, and both are written in the voice of the next connection.
//! - *Answers in their order*: [`Seat::ask_in_turn`](crate::session::seat::Seat::ask_in_turn) has the client's next frame wait.
//! - *Events that are numbered, or not for every client*: a [personal](event::Voice::is_personal) voice. The conversation
//!   admits and stamps what leaves.
//! - *Limits of frames and of patience*: [`Manners`](crate::dialect::Manners), which may change as a client speaks.
//! - *Calls without a connection*: a [`Visitor`](crate::read::Visitor) asks the same calls at the
//!   [`Desk`](crate::read::Desk), as an agent, as the holder of a key, or as a stranger.
//! - *Pages over HTTP*: a [`Site`](crate::dialect::Site) with errors, methods and headers of its own, under paths of its own.
//!
//! Rooms, agents, votes and tasks have the names and views of the core's API ([`mesh::name`],
//! [`mesh::api`]). Metadata is JSON text: sound, on one line, and not `null`; the dialect that takes it
//! from a client checks that.

pub mod answer;
pub mod call;
pub mod event;
pub mod principal;
pub mod refusal;

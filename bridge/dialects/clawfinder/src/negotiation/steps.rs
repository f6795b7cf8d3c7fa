//! States of a session, and how they follow from its mail.

use std::fmt;

/// A step: the type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// The consumer asks.
    Init,
    /// The provider says what it can do.
    Ack,
    /// The consumer offers terms.
    Propose,
    /// Whoever did not offer last offers other terms.
    Counter,
    /// Whoever did not offer last agrees.
    Accept,
    /// Either ends it.
    Reject,
    /// The consumer gives the work.
    Execute,
    /// The provider gives what came of it.
    Result,
}

impl Step {
    /// All of them, in the order of a session.
    pub(crate) const ALL: [Step; 8] = [
        Step::Init,
        Step::Ack,
        Step::Propose,
        Step::Counter,
        Step::Accept,
        Step::Reject,
        Step::Execute,
        Step::Result,
    ];

    /// As messages write it.
    pub(crate) fn upper(self) -> &'static str {
        match self {
            Step::Init => "INIT",
            Step::Ack => "ACK",
            Step::Propose => "PROPOSE",
            Step::Counter => "COUNTER",
            Step::Accept => "ACCEPT",
            Step::Reject => "REJECT",
            Step::Execute => "EXECUTE",
            Step::Result => "RESULT",
        }
    }

    /// As subjects and JSON write it.
    pub(crate) fn lower(self) -> &'static str {
        match self {
            Step::Init => "init",
            Step::Ack => "ack",
            Step::Propose => "propose",
            Step::Counter => "counter",
            Step::Accept => "accept",
            Step::Reject => "reject",
            Step::Execute => "execute",
            Step::Result => "result",
        }
    }

    /// Reads it, in any case.
    pub(crate) fn read(text: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.upper().eq_ignore_ascii_case(text))
    }
}

/// Whose part an account has in a session: the sender of INIT is the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Who wants work done.
    Consumer,
    /// Who does it.
    Provider,
}

impl Role {
    /// As JSON writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Consumer => "consumer",
            Role::Provider => "provider",
        }
    }
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// Asked.
    Inited,
    /// Answered.
    Acked,
    /// Terms lie on the table, offered by this side.
    Offered(Role),
    /// Agreed.
    Accepted,
    /// The work was given.
    Executing,
    /// Its outcome was given.
    Done,
    /// Over.
    Rejected,
}

impl State {
    /// As JSON writes it; [`State::offered_by`] says the rest.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Inited => "inited",
            State::Acked => "acked",
            State::Offered(_) => "offered",
            State::Accepted => "accepted",
            State::Executing => "executing",
            State::Done => "done",
            State::Rejected => "rejected",
        }
    }

    /// Whose terms lie on the table.
    pub(crate) fn offered_by(self) -> Option<Role> {
        match self {
            State::Offered(by) => Some(by),
            State::Inited
            | State::Acked
            | State::Accepted
            | State::Executing
            | State::Done
            | State::Rejected => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offered_by() {
            Some(by) => write!(f, "offered by {}", by.name()),
            None => f.write_str(self.name()),
        }
    }
}

/// The state after a step by this side, if it is allowed. `None` as the state: there is no session yet.
pub(crate) fn next(state: Option<State>, step: Step, by: Role) -> Option<State> {
    use Role::{Consumer, Provider};
    use State::{Accepted, Acked, Done, Executing, Inited, Offered, Rejected};
    match (state, step, by) {
        (None, Step::Init, Consumer) => Some(Inited),
        (Some(Inited), Step::Ack, Provider) => Some(Acked),
        (Some(Acked), Step::Propose, Consumer) => Some(Offered(Consumer)),
        (Some(Offered(last)), Step::Counter, by) if by != last => Some(Offered(by)),
        (Some(Offered(last)), Step::Accept, by) if by != last => Some(Accepted),
        (Some(Inited | Acked | Offered(_)), Step::Reject, _) => Some(Rejected),
        (Some(Accepted), Step::Execute, Consumer) => Some(Executing),
        (Some(Executing | Done), Step::Result, Provider) => Some(Done),
        _ => None,
    }
}

/// The steps that this side may take now.
pub(crate) fn allowed(state: Option<State>, by: Role) -> Vec<Step> {
    Step::ALL.into_iter().filter(|step| next(state, *step, by).is_some()).collect()
}

/// Why a step is refused at its sender's node. The session's id is at most 64 bytes long.
pub(crate) fn refusal(state: State, step: Step, session: &str) -> String {
    format!("clawfinder/1 {} is not allowed in state {state} (session {session})", step.upper())
}

/// A mail of a session, as all nodes see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent<S, I, A> {
    /// When it was written. Stamps of a session are above all that its writer had.
    pub(crate) stamp: S,
    /// The mail's id: it orders equal stamps.
    pub(crate) id: I,
    /// Who sent it.
    pub(crate) from: A,
    /// What it says, by its subject.
    pub(crate) step: Step,
}

/// What became of a mail of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// It moved the session.
    Yes,
    /// It was not allowed where it stands.
    No,
    /// Neither was it, but its sender may not have seen all that stands before it: messages crossed, or a split healed.
    Late,
}

/// A session, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session<I, A> {
    /// The sender of INIT, if there is one.
    pub(crate) consumer: Option<A>,
    /// Where it stands.
    pub(crate) state: Option<State>,
    /// Its mails in their order, what became of each, and the state after it.
    pub(crate) mails: Vec<(I, Counted, Option<State>)>,
}

impl<I, A: PartialEq> Session<I, A> {
    /// The part of an account in it.
    pub(crate) fn role_of(&self, account: &A) -> Option<Role> {
        let consumer = self.consumer.as_ref()?;
        Some(if consumer == account { Role::Consumer } else { Role::Provider })
    }
}

/// Folds the mails of a session between two accounts, given in any order.
pub(crate) fn fold<S: Ord, I: Ord, A: PartialEq>(mut sent: Vec<Sent<S, I, A>>) -> Session<I, A> {
    sent.sort_by(|a, b| (&a.stamp, &a.id).cmp(&(&b.stamp, &b.id)));
    let mut session =
        Session { consumer: None, state: None, mails: Vec::with_capacity(sent.len()) };
    // The states that each side may still have seen when it wrote: back to its own last step that counted.
    let mut seen_by_consumer = vec![None];
    let mut seen_by_provider = vec![None];
    for Sent { id, from, step, .. } in sent {
        // Before an INIT counts, its sender is who would be the consumer.
        let by = session.role_of(&from).unwrap_or(Role::Consumer);
        if let Some(after) = next(session.state, step, by) {
            session.state = Some(after);
            let (own, others) = match by {
                Role::Consumer => (&mut seen_by_consumer, &mut seen_by_provider),
                Role::Provider => (&mut seen_by_provider, &mut seen_by_consumer),
            };
            own.clear();
            own.push(session.state);
            others.push(session.state);
            session.consumer.get_or_insert(from);
            session.mails.push((id, Counted::Yes, session.state));
            continue;
        }
        let seen = match by {
            Role::Consumer => &seen_by_consumer,
            Role::Provider => &seen_by_provider,
        };
        // Both may have begun one of the same id: then the other one was to be the consumer, as far as its node knew.
        let was_allowed = seen.iter().any(|state| {
            let by = if state.is_none() { Role::Consumer } else { by };
            next(*state, step, by).is_some()
        });
        let counted = if was_allowed { Counted::Late } else { Counted::No };
        session.mails.push((id, counted, session.state));
    }
    session
}

//! One connection: its frames, until it is connected and after.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use bridge::{
    delivery::ending::Ending,
    dialect::{Conversation, Heard, Manners},
    seam::event::{PING, Recipient},
    secret::Secret,
    session::seat::Seat,
};
use bytes::Bytes;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    answer::Answer,
    caller::Caller,
    connect::{Connected, connect},
    dispatch::Asked,
    frame::{Bad, Request, response},
    limits::{
        BAD_FRAMES_MAX, BAD_FRAMES_WITHIN, CONNECT_WITHIN, FAILED_CONNECTS_MAX, KEY_LOOK_EVERY,
        MESSAGE_BYTES_MAX, PACE, PAIR_WITHIN, PING_EVERY, SILENT_FOR_MAX,
        STRANGER_MESSAGE_BYTES_MAX,
    },
    line::{Line, Next},
    methods::{Role, named},
    outcome::{Code, No, Outcome},
    pairing::{self, Device},
    params::Params,
    shared::{Client, Shared},
    times,
};

/// How clients are treated that are connected, or want to be.
pub(crate) const MANNERS: Manners = Manners {
    frame_bytes_max: MESSAGE_BYTES_MAX,
    attach_within: CONNECT_WITHIN,
    silence: SILENT_FOR_MAX,
    // Pings are this dialect's own.
    heartbeat: PING_EVERY,
    pace: Some(PACE),
    too_large: Ending::TooLarge,
    not_text: Ending::NotText,
};

/// See the module.
pub(crate) struct Talk {
    shared: Arc<OnceLock<Arc<Shared>>>,
    line: Arc<Line>,
    state: Arc<Mutex<State>>,
    /// Whether its first frame has come.
    begun: bool,
    bad: BadFrames,
}

#[derive(Default)]
struct State {
    connected: Option<Member>,
    failures: u32,
    /// The pairing that it has asked for.
    pairing: Option<Secret>,
}

#[derive(Clone)]
struct Member {
    caller: Arc<Caller>,
    client: u64,
}

/// Bad frames of a short time.
struct BadFrames {
    since: Instant,
    count: u32,
}

impl Talk {
    pub(crate) fn new(shared: Arc<OnceLock<Arc<Shared>>>) -> Talk {
        let bad = BadFrames { since: Instant::now(), count: 0 };
        Talk { shared, line: Arc::default(), state: Arc::default(), begun: false, bad }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// A frame that is none is answered all the same; one that sends many has to go.
    fn refuse(&mut self, id: &str, no: No) {
        self.line.answer(response(id, &Err(no)));
        let now = Instant::now();
        if now.duration_since(self.bad.since) > BAD_FRAMES_WITHIN {
            self.bad = BadFrames { since: now, count: 0 };
        }
        self.bad.count += 1;
        if self.bad.count >= BAD_FRAMES_MAX {
            self.line.end(Ending::BadFrame);
        }
    }

    fn answer(&self, id: &str, outcome: &Outcome) {
        self.line.answer(response(id, outcome));
    }

    /// A request of a client that is not connected.
    fn stranger(&mut self, seat: &mut Seat, shared: Arc<Shared>, request: Request) {
        let Request { id, method, params } = request;
        let params = Params::new(params);
        match &*method {
            "connect" => self.connect(seat, shared, id, params),
            "device.pair.request" => {
                let own = self.state().pairing.clone();
                let device = Device::of(&params);
                let asked = device
                    .and_then(|device| pairing::ask(&shared, device, seat.client(), own.as_ref()));
                let outcome = asked.map(|asked| {
                    let result = json!({"code": asked.code, "sender_id": asked.issued.expose()});
                    self.state().pairing = Some(asked.issued);
                    result
                });
                self.answer(&id, &outcome);
            }
            "browser.pairing.status" => {
                let line = self.line.clone();
                let work = async move { pairing::status(&shared, &params).await };
                seat.owe(work, move |_, outcome| line.answer(response(&id, &outcome)));
            }
            _ => {
                let text = "first request must be 'connect'";
                self.refuse(&id, No::unauthorized(text));
            }
        }
    }

    fn connect(&self, seat: &mut Seat, shared: Arc<Shared>, id: String, params: Params) {
        let (line, state) = (self.line.clone(), self.state.clone());
        let address = seat.client();
        let own = self.state().pairing.clone();
        let work = connect(shared.clone(), params, address, own);
        seat.owe_in_turn(work, move |seat, connected| match connected {
            Ok(Connected::Yes { caller, result }) => {
                seat.admit(&caller.holder);
                let client = shared.next_id();
                locked(&state).connected = Some(Member { caller: caller.clone(), client });
                line.answer(response(&id, &Ok(result)));
                let since_ms = times::now_ms();
                let member = Client { id: client, caller, line: line.clone(), address, since_ms };
                shared.comes(member.clone());
                look_after(seat, member);
            }
            Ok(Connected::Pending { issued, result }) => {
                locked(&state).pairing = Some(issued);
                line.answer(response(&id, &Ok(result)));
            }
            Err(no) => {
                let failures = {
                    let mut state = locked(&state);
                    state.failures += u32::from(no.code == Code::Unauthorized);
                    state.failures
                };
                // The connection is no member: nothing of it ends with its key.
                line.answer(response(&id, &Err(No { ends: false, ..no })));
                if failures >= FAILED_CONNECTS_MAX {
                    line.end(Ending::Refused);
                }
            }
        });
    }

    /// A request of one that is.
    fn member(&self, seat: &mut Seat, member: Member, request: Request) {
        let Request { id, method, params } = request;
        if method == "connect" {
            return self.answer(&id, &Err(No::invalid("already connected")));
        }
        let Some(method) = named(&method) else {
            let text = format!("unknown method: {method}");
            return self.answer(&id, &Err(No::invalid(text)));
        };
        let Member { caller, client } = member;
        let may = caller.may(method).and_then(|()| match method.role {
            Role::Viewer => caller.count_read(),
            Role::Operator | Role::Admin => Ok(()),
        });
        if let Err(no) = may {
            return self.answer(&id, &Err(no));
        }
        let (answer, given) = Answer::to(&self.line, id);
        let asked = Asked { caller, client, method, params: Params::new(params) };
        let work = async move {
            asked.answered(answer).await;
            // An error is the end: nothing is sent that way.
            drop(given.await);
        };
        seat.owe(work, |_, ()| {});
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.line.is_over();
        let member = self.state().connected.take();
        if let (Some(member), Some(shared)) = (member, self.shared.get()) {
            shared.goes(member.client);
        }
    }
}

impl Recipient for Talk {}

impl Conversation for Talk {
    fn hear(&mut self, seat: &mut Seat, frame: Heard<'_>) {
        let Some(shared) = self.shared.get().cloned() else { return seat.close(Ending::Failed) };
        if !self.begun {
            self.begun = true;
            speak(seat, self.line.clone());
        }
        let Heard::Text(text) = frame else { return seat.close(Ending::NotText) };
        let member = self.state().connected.clone();
        if member.is_none() && text.len() > STRANGER_MESSAGE_BYTES_MAX {
            return self.line.end(Ending::TooLarge);
        }
        let request = match Request::parse(text) {
            Ok(request) => request,
            Err(Bad { id, no }) => return self.refuse(&id, no),
        };
        if !shared.settings().on {
            let text = "GoClaw is switched off on this node: its operator starts clawmeshd without --no-goclaw";
            self.answer(&request.id, &Err(No::new(Code::Unavailable, text)));
            return self.line.end(Ending::Refused);
        }
        match member {
            Some(member) => self.member(seat, member, request),
            None => self.stranger(seat, shared, request),
        }
    }

    fn manners(&self) -> Manners {
        // An administrator has to read the code.
        let waits = self.state().pairing.is_some();
        let attach_within = if waits { PAIR_WITHIN } else { CONNECT_WITHIN };
        Manners { attach_within, ..MANNERS }
    }

    fn farewell(&mut self, ending: Ending) -> Option<Bytes> {
        let is_told = ending == Ending::GoingAway && self.state().connected.is_some();
        is_told.then(|| self.line.last("shutdown"))
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what waits, as the client takes it.
fn speak(seat: &mut Seat, line: Arc<Line>) {
    let next = async move {
        let next = line.next().await;
        (next, line)
    };
    seat.later(next, |seat, (Next { frames, ending }, line)| {
        for frame in frames {
            seat.reply(frame);
        }
        match ending {
            Some(ending) => seat.close(ending),
            None => speak(seat, line),
        }
    });
}

/// Looks whether the client is there, and whether its key is valid, as long as the connection lasts.
fn look_after(seat: &mut Seat, client: Client) {
    ping(seat, client.clone());
    check(seat, client);
}

/// Pings, and tells clients that know it the time.
fn ping(seat: &mut Seat, client: Client) {
    seat.later(sleep(PING_EVERY), |seat, ()| {
        seat.reply(PING);
        if client.caller.modern {
            client.line.event("tick", &json!({"ts": times::now_ms()}));
        }
        ping(seat, client);
    });
}

fn check(seat: &mut Seat, client: Client) {
    let look = async move {
        sleep(KEY_LOOK_EVERY).await;
        let valid = client.caller.is_valid().await;
        (valid, client)
    };
    seat.later(look, |seat, (valid, client)| match valid {
        Err(no) if no.ends => client.line.end(Ending::Revoked),
        Ok(()) | Err(_) => check(seat, client),
    });
}

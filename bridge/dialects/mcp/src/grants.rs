//! What the holder of a token or key may do and is shown, as this dialect has it.
//!
//! Of an agent that is shown little, whatever it is not shown is as what does not exist: a name that means nothing and
//! one that means something hidden have the same answer, with the name as it was given.

use bridge::tokens::{Grant, Scope, Sight, Visibility};
use mesh::api::command::RoomView;

use crate::{asking::Asking, groups::Groups, outcome::No, sessions::Session};

/// The groups of tools that a host is offered: those that it asks for, or the operator, within those of its token.
pub(crate) fn groups(grant: &Grant, asked: Option<Groups>, assumed: Groups) -> Groups {
    match (asked, granted(grant)) {
        (Some(asked), granted) => asked.within(granted.unwrap_or(Groups::EVERY)),
        (None, Some(granted)) => granted,
        (None, None) => assumed,
    }
}

/// Those of a token. `None`: it says nothing of them.
fn granted(grant: &Grant) -> Option<Groups> {
    // Names that this version does not know give nothing.
    grant.tools.as_deref().map(|names| Groups::parse(names).unwrap_or(Groups::NONE))
}

/// The agent that is named, or that of a token. A token is for one agent: under another id its holder would see what is that
/// one's.
pub(crate) fn agent(grant: &Grant, named: Option<String>) -> Result<Option<String>, String> {
    let Some(own) = &grant.agent else { return Ok(named) };
    match named {
        Some(other) if *other != **own => {
            Err(format!("this token is for the agent {:?}, not for {other:?}", &**own))
        }
        Some(_) | None => Ok(Some(own.to_string())),
    }
}

impl Asking {
    /// With all tools that it is granted, for programs.
    pub(crate) fn with_all_granted(self) -> Asking {
        Asking { groups: groups(&self.grant, Some(Groups::EVERY), Groups::EVERY), ..self }
    }

    /// Whether it may do this.
    pub(crate) fn may(&self, scope: Scope) -> Result<(), No> {
        if self.grant.scopes.has(scope) {
            return Ok(());
        }
        let name = scope.name();
        let text = format!("this token may not {name}; its operator can make one with that scope");
        Err(No::forbidden(&format!("scope.{name}"), text))
    }

    /// Whether what it is not shown is as what does not exist.
    pub(crate) fn is_confined(&self) -> bool {
        self.grant.hides()
    }

    /// Whether it is shown a room, if it is not in it.
    fn sight(&self, room: &RoomView) -> Sight {
        self.grant.visibility.of(room, &self.agent)
    }

    /// Whether it is shown a room that its key may read, so that it may know of it.
    pub(crate) fn may_see(&self, room: &RoomView) -> bool {
        !matches!(self.sight(room), Sight::Hidden)
    }

    /// Whether it reads a room.
    pub(crate) async fn may_read(&self, room: &RoomView) -> Result<bool, No> {
        Ok(match self.sight(room) {
            Sight::Shown => true,
            Sight::Inside => self.seats().await?.contains(&room.room),
            Sight::Hidden => false,
        })
    }

    /// A session that was asked for as `named`, if it may know of it.
    pub(crate) fn shown(&self, named: &str, found: Result<Session, No>) -> Result<Session, No> {
        self.screened(named, found, |session| self.may_see_session(session))
    }

    /// The same of a room.
    pub(crate) fn shown_room(
        &self,
        named: &str,
        found: Result<RoomView, No>,
    ) -> Result<RoomView, No> {
        self.screened(named, found, |room| self.may_see(room))
    }

    fn may_see_session(&self, session: &Session) -> bool {
        match session {
            Session::Main => true,
            Session::Agent(_) => self.grant.visibility >= Visibility::Joined,
            Session::Room(room) => self.may_see(room),
            Session::Thread(of, _) => self.may_see_session(of),
        }
    }

    fn screened<T>(
        &self,
        named: &str,
        found: Result<T, No>,
        may_see: impl Fn(&T) -> bool,
    ) -> Result<T, No> {
        match found {
            Ok(found) if may_see(&found) => Ok(found),
            Ok(_) => Err(self.not_visible(named)),
            Err(no) if self.is_confined() && no.is_of_a_name() => Err(self.not_visible(named)),
            Err(no) => Err(no),
        }
    }

    /// It is not shown what was asked for as `named`.
    pub(crate) fn not_visible(&self, named: &str) -> No {
        let named = named.trim();
        let (rule, text) = if self.grant.sandboxed {
            let text = "Session not visible from this sandboxed agent session";
            ("sandbox", format!("{text}: {named}"))
        } else if self.is_confined() {
            ("visibility", format!("session not visible to this agent: {named}"))
        } else {
            let text = "session not visible to this agent";
            ("visibility", format!("{text}: {named}; call room_join first"))
        };
        let (rule, session) = (rule.to_owned(), Some(named.to_owned()));
        No::Forbidden { rule, text, session, more: serde_json::Map::new() }
    }
}

//! What agents at different nodes hand each other outside the mesh, as soon as it is answered: in either world.

/// So many agents hand things to each other, each at a node of its own.
pub(crate) const AGENTS: usize = 3;

/// What one of them asks of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A room of its own.
    Create,
    /// To be in it.
    Join,
    /// A vote of all who are in it.
    Open,
    /// To vote.
    Cast,
    /// How the vote is.
    View,
    /// A task.
    Assign,
    /// To have the task.
    Take,
    /// To say something.
    Say,
    /// What was said after that.
    Since,
    /// An election among all who are in the room.
    Elect,
    /// Not to stand.
    Decline,
    /// To be there no more.
    Leave,
}

/// Who asks for what, one after the other: each time the one before has its answer, and says so to the next.
pub(crate) const ROUND: [(usize, Ask); 16] = [
    (0, Ask::Create),
    (0, Ask::Join),
    (1, Ask::Join),
    (2, Ask::Join),
    (0, Ask::Open),
    (1, Ask::Cast),
    (2, Ask::View),
    (2, Ask::Assign),
    (1, Ask::Take),
    (2, Ask::Say),
    (0, Ask::Since),
    (1, Ask::Elect),
    (0, Ask::Decline),
    (0, Ask::Leave),
    (1, Ask::Leave),
    (2, Ask::Leave),
];

/// Ids that they have told each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) room: String,
    pub(crate) vote: String,
    pub(crate) task: String,
    pub(crate) message: String,
}

/// What a node answers: the id of what was made, and among how many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) among: Option<u64>,
}

impl Given {
    /// Notes an answer. What is wrong with it, if something is: a refusal, or somebody is missing.
    pub(crate) fn note(&mut self, ask: Ask, answer: Result<Answer, String>) -> Option<String> {
        let Answer { id, among } = match answer {
            Ok(answer) => answer,
            Err(code) => return Some(code),
        };
        match ask {
            Ask::Create => self.room = id,
            Ask::Open => self.vote = id,
            Ask::Assign => self.task = id,
            Ask::Say => self.message = id,
            Ask::Join
            | Ask::Cast
            | Ask::View
            | Ask::Take
            | Ask::Since
            | Ask::Elect
            | Ask::Decline
            | Ask::Leave => {}
        }
        let missing = among.filter(|among| *among != AGENTS as u64);
        missing.map(|among| format!("{among} of {AGENTS} were there"))
    }
}

/// The agent of a round: they take turns at being first.
pub(crate) fn agent(round: u64, who: usize) -> usize {
    usize::try_from((round + who as u64) % AGENTS as u64).unwrap_or(0)
}

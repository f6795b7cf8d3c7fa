//! A row of history, as readers give it.

use mesh::{
    name::{
        id::{LocalRef, LogId, MessageId},
        number::Number,
    },
    wire::entry::{Facts, Said},
};

/// A message, or another numbered entry, of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number: which one, the method says that gives the row.
    pub number: Number,
    /// The lowest number it has here. Another than `number`: it came late.
    pub canonical: Number,
    /// All its numbers, if it has several: ascending, the lowest [`ROW_NUMBERS_MAX`] of them.
    ///
    /// [`ROW_NUMBERS_MAX`]: crate::limits::ROW_NUMBERS_MAX
    pub numbers: Vec<Number>,
    /// Where it is at this node.
    pub at: LocalRef,
    /// Whose log it is in.
    pub log: LogId,
    /// Its id.
    pub message: MessageId,
    /// Clock, wall time, kind.
    pub facts: Facts,
    /// The message. `None`: an entry that is no message (of the directory, or of a later version),
    /// or one whose body was dropped because it was old.
    pub said: Option<Said>,
}

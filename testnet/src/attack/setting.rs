//! How an attack is to be played.

/// How an attack is to be played.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How long honest agents are measured before the attack, and during it.
    pub seconds: f64,
    /// Messages that each honest agent sends in a second.
    pub rate: f64,
    /// Threads of the attacker.
    pub threads: usize,
    /// Connections, or slow readers, of those kinds that consist of many.
    pub many: usize,
    /// How long the attack goes on.
    pub until: Until,
}

/// When an attack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When its seconds are over: for figures.
    Over,
    /// When the offender is named, if it is to be, and honest agents were answered meanwhile; at the latest after its
    /// seconds.
    Seen,
}

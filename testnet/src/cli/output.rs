//! The one place that writes: results to stdout, everything else to stderr.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Elsewhere than at a terminal, progress is told so often at least.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Standard output and error.
#[derive(Debug)]
pub(super) struct Output {
    /// Progress overwrites itself at a terminal, and is sparse elsewhere.
    terminal: bool,
    /// A line of progress stands at the terminal.
    open: bool,
    /// When progress was last told.
    told: Instant,
}

impl Output {
    pub(super) fn new() -> Output {
        Output { terminal: io::stderr().is_terminal(), open: false, told: Instant::now() }
    }

    /// The output that was asked for.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.close();
        let mut out = io::stdout().lock();
        writeln!(out, "{}", text.trim_end())?;
        out.flush()
    }

    /// For the person who reads along.
    pub(super) fn note(&mut self, text: &str) {
        self.close();
        // Nobody may be there.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// How far it is: at a terminal each time, elsewhere when it is a tenth further, or a minute later.
    pub(super) fn progress(&mut self, done: u64, of: u64, text: &str) {
        // Nobody may be there, both times.
        if self.terminal {
            self.open = true;
            let _ = write!(io::stderr(), "\r\x1b[K{done} of {of} {text}");
            return;
        }
        let tenth = of >= 10 && (done * 10 / of) != (done.saturating_sub(1) * 10 / of);
        if tenth || self.told.elapsed() >= TOLD_EVERY {
            self.told = Instant::now();
            let _ = writeln!(io::stderr(), "{done} of {of} {text}");
        }
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = writeln!(io::stderr());
        }
    }
}

/// For the person who reads along, from where there is no [`Output`].
pub(super) fn tell(text: &str) {
    // Nobody may be there.
    let _ = writeln!(io::stderr(), "{text}");
}

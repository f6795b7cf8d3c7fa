//! Programs that are left running, and programs at a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::support::SOON;

/// A program that goes on. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        let err = BufReader::new(child.stderr.take().unwrap()).lines();
        Running { child, out, err }
    }

    /// The next line of its result.
    pub(crate) fn line(&mut self, runtime: &Handle) -> String {
        runtime.block_on(next(&mut self.out))
    }

    /// The next line on stderr.
    pub(crate) fn note(&mut self, runtime: &Handle) -> String {
        runtime.block_on(next(&mut self.err))
    }

    /// Lines of its result up to the one that is looked for.
    pub(crate) fn until(&mut self, runtime: &Handle, wanted: impl Fn(&str) -> bool) {
        while !wanted(&self.line(runtime)) {}
    }

    /// Waits for its end: the exit code.
    pub(crate) fn end(mut self, runtime: &Handle) -> i32 {
        let status = runtime.block_on(async { timeout(SOON, self.child.wait()).await });
        status.expect("it ends").unwrap().code().unwrap_or(-1)
    }
}

async fn next<R: AsyncRead + Unpin>(lines: &mut Lines<BufReader<R>>) -> String {
    let line = timeout(SOON, lines.next_line()).await.expect("a line comes");
    line.unwrap().expect("it goes on")
}

/// A program at a terminal of 100 by 30. Dropped, it is killed.
pub(crate) struct Typed {
    child: Child,
    keys: File,
    screen: Arc<Screen>,
}

/// The bytes that came to the terminal.
struct Screen {
    came: Mutex<Came>,
    changed: Condvar,
}

struct Came {
    /// The bytes that no wait has jumped over.
    text: Vec<u8>,
    /// All of them, as they stand on the screen.
    screen: vt100::Parser,
}

const COLUMNS: NonZeroU16 = NonZeroU16::new(100).unwrap();
/// More than the program knows of: no row leaves the screen that tests look at.
const ROWS: NonZeroU16 = NonZeroU16::new(500).unwrap();

impl Came {
    /// The rows of the screen, but for empty ones, and without blanks at their ends.
    fn rows(&self) -> Vec<String> {
        let rows = self.screen.screen().rows(0, COLUMNS.get());
        let rows = rows.map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }
}

impl Typed {
    pub(crate) fn start(mut command: Command) -> Typed {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: 30, ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let end = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.env("TERM", "xterm");
        command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
        let child = command.spawn().unwrap();
        // Else the terminal stays open at this end when the program has ended.
        drop(command);
        let keys = File::from(terminal);
        let mut output = keys.try_clone().unwrap();
        let came = Came { text: Vec::new(), screen: vt100::Parser::new(ROWS, COLUMNS, 0) };
        let screen = Arc::new(Screen { came: Mutex::new(came), changed: Condvar::new() });
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error is the end: nobody has the other side open any more.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let mut came = seen.came.lock().unwrap_or_else(PoisonError::into_inner);
                came.text.extend_from_slice(&bytes[..count]);
                came.screen.process(&bytes[..count]);
                seen.changed.notify_all();
            }
        });
        Typed { child, keys, screen }
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: &str) {
        self.types_key(&format!("{line}\n"));
    }

    /// Types keys, as they are.
    pub(crate) fn types_key(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this text has come to the terminal, after the text of the last wait.
    pub(crate) fn sees(&mut self, wanted: &str) {
        self.wait(wanted, |came| {
            let shown = String::from_utf8_lossy(&came.text).into_owned();
            let Some(at) = shown.find(wanted) else { return false };
            came.text = shown.as_bytes()[at + wanted.len()..].to_vec();
            true
        });
    }

    /// Waits until the last rows of the screen end like this, and goes on behind all that has come.
    pub(crate) fn shows(&mut self, wanted: &[&str]) {
        self.wait(&format!("{wanted:?}"), |came| {
            let rows = came.rows();
            let last = &rows[rows.len().saturating_sub(wanted.len())..];
            let so = last.len() == wanted.len()
                && last.iter().zip(wanted).all(|(row, wanted)| row.ends_with(wanted));
            if so {
                came.text.clear();
            }
            so
        });
    }

    /// Waits until a row of the screen has this.
    pub(crate) fn has(&mut self, wanted: &str) {
        self.wait(wanted, |came| came.rows().iter().any(|row| row.contains(wanted)));
    }

    /// The rows of the screen, but for empty ones.
    pub(crate) fn rows(&self) -> Vec<String> {
        self.screen.came.lock().unwrap_or_else(PoisonError::into_inner).rows()
    }

    fn wait(&self, what: &str, mut so: impl FnMut(&mut Came) -> bool) {
        let deadline = Instant::now() + SOON;
        let mut came = self.screen.came.lock().unwrap_or_else(PoisonError::into_inner);
        while !so(&mut came) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what} in:\n{}", came.rows().join("\n"));
            let waited = self.screen.changed.wait_timeout(came, left);
            came = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.try_into().unwrap()));
        kill_process(id.expect("it runs"), signal).unwrap();
    }

    /// Whether its terminal reads whole lines, shows what is typed, and has keys that end programs.
    pub(crate) fn is_as_usual(&self) -> bool {
        let usual = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        tcgetattr(&self.keys).unwrap().local_modes.contains(usual)
    }

    /// Waits for its end: how it ended. The terminal has to be as usual then.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(self.is_as_usual(), "the terminal is not as it was");
                return status;
            }
            assert!(Instant::now() < deadline, "it goes on:\n{}", self.rows().join("\n"));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// The same: the exit code.
    pub(crate) fn ends(mut self) -> i32 {
        self.ended().code().unwrap_or(-1)
    }
}

//! Programs that are left running, and programs at a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
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

/// Every byte that came to the terminal.
#[derive(Default)]
struct Screen {
    text: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl Typed {
    pub(crate) fn start(mut command: Command) -> Typed {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
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
        let screen = Arc::new(Screen::default());
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error is the end: nobody has the other side open any more.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let mut text = seen.text.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&bytes[..count]);
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
        let deadline = Instant::now() + SOON;
        let mut text = self.screen.text.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let shown = String::from_utf8_lossy(&text).into_owned();
            if let Some(at) = shown.find(wanted) {
                *text = shown.as_bytes()[at + wanted.len()..].to_vec();
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no `{wanted}` in:\n{shown}");
            let waited = self.screen.changed.wait_timeout(text, left);
            text = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for its end: the exit code.
    pub(crate) fn ends(mut self) -> i32 {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "it goes on");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
